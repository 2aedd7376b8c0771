"""The documents of a service elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import urlencode

from swingbot.app.documents import Facts, kind_of, kind_with_numbers
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.followed_progress import FollowedProgress
from swingbot.app.remote.login import Login
from swingbot.core.model import ids
from swingbot.core.model.answer_documents import PostedCommit
from swingbot.core.model.documents import Bisection, Incident, Table, Variant
from swingbot.core.model.list_documents import (
    LineOfABisection,
    LineOfAMetric,
    LineOfAnIncident,
    LineOfAnOrder,
    LineOfATable,
    LineOfATestbox,
    LineOfATree,
    Status,
)
from swingbot.core.model.order_documents import Boot, Order
from swingbot.core.model.plan_documents import Explanation
from swingbot.core.model.report_documents import (
    LineOfAReport,
    Moderation,
    Outbox,
    Recipients,
    Report,
)
from swingbot.core.model.result_documents import ChoiceOfKernels, MetricOverCommits, Results
from swingbot.core.model.upkeep_documents import Cover
from swingbot.service.report.results_query import HistoryQuery, ResultsQuery

_LINES: Final[Mapping[str, Any]] = {
    "bisections": LineOfABisection,
    "comparisons": LineOfATable,
    "experiments": LineOfATable,
    "incidents": LineOfAnIncident,
    "metrics": LineOfAMetric,
    "orders": LineOfAnOrder,
    "reports": LineOfAReport,
    "testboxes": LineOfATestbox,
    "trees": LineOfATree,
}
_ONE: Final[Mapping[str, Any]] = {
    **dict.fromkeys(ids.TABLES, Table),
    "bisection": Bisection,
    "incident": Incident,
    "report": Report,
    "order": Order,
    "variant": Variant,
    "boot": Boot,
}


def _append(facts: Facts, piece: Facts) -> None:
    """Add the rows of a table, or the samples of a boot, that follow those in `facts`."""
    if "rows" in facts:
        facts["rows"] += piece["rows"]
        return
    for run, more in zip(facts["runs"], piece["runs"], strict=True):
        for metric, values in more["samples"].items():
            run["samples"].setdefault(metric, []).extend(values)


class HttpDocuments:
    """Implements `Documents`; each method also raises ServiceError."""

    def __init__(self, login: Login) -> None:
        self.url, self._service = login.url, Connection(login)

    def status(self) -> Facts:
        return cast(Facts, self._service.json(Status, "/status.json"))

    def listing(self, plural: str, filters: Mapping[str, str], limit: int) -> list[Facts]:
        return self._service.rows(_LINES[plural], f"/{plural}.json", filters, limit)

    def document(self, id_: str) -> Facts:
        kind = kind_of(id_)
        pieces = self._service.document_pieces(_ONE[kind], f"/{kind}/{id_}.json")
        facts = cast(Facts, next(pieces))
        for piece in pieces:
            _append(facts, piece)
            facts["next"] = piece["next"]
        return facts

    def progress(self, id_: str) -> Facts:
        return self._followed(id_).now()

    def news(self, id_: str, seconds: float) -> Facts | None:
        return self._followed(id_).news(seconds)

    def shown(self, id_: str, *, counters: bool) -> str:
        query = {"counters": "1"} if counters else None
        return self._service.text(f"/{ids.read(id_)[0]}/{id_}/show.txt", query)

    def printed(self, id_: str, form: str) -> str:
        kind = kind_with_numbers(id_)
        return self._service.text(
            f"/{kind}/{id_}/table.csv" if form == "csv" else f"/{kind}/{id_}/{form}.txt"
        )

    def bisection_log(self, id_: str, *, people: bool) -> str:
        ids.read(id_, "bisection")
        return self._service.text(f"/bisection/{id_}/log.{'txt' if people else 'jsonl'}")

    def explanation(self, id_: str) -> Facts:
        ids.read(id_, "bisection")
        return cast(Facts, self._service.json(Explanation, f"/bisection/{id_}/explanation.json"))

    def open_work(self) -> Facts:
        facts = self.status()
        return {"idle": facts["idle"], "open": facts["open"]}

    def mail_switch(self) -> tuple[Facts, bool]:
        facts = self._service.json(Outbox, "/outbox.json")
        return facts["switch"], facts["settings"]["stopped_by_setting"]

    def report_classes(self) -> tuple[list[Facts], str]:
        facts = self._service.json(Moderation, "/moderation.json")
        return facts["classes"], str(facts["settings"]["release"])

    def recipients(self, tree: str, commit: str, base: str | None) -> Facts:
        query = {"tree": tree, "commit": commit} | ({} if base is None else {"base": base})
        return cast(Facts, self._service.json(Recipients, "/recipients.json", query))

    def results(self, query: ResultsQuery) -> Facts:
        # those of fewer than two kernels are the ones to choose from
        kind = Results | ChoiceOfKernels
        return cast(Facts, self._service.json(kind, query.address(".json")))

    def posted(self, mails: Sequence[str], patches: Sequence[str]) -> list[Facts]:
        named = [*(("mail", mail) for mail in mails), *(("patch", one) for one in patches)]
        query = urlencode(named)
        return cast(list[Facts], self._service.json(list[PostedCommit], f"/posted.json?{query}"))

    def cover(self, tree: str, target: str) -> Cover:
        query = {"tree": tree, "code": target}
        return cast(Cover, self._service.json(Cover, "/cover.json", query))

    def history(self, query: HistoryQuery) -> Facts:
        return cast(Facts, self._service.json(MetricOverCommits, "/metric.json", query.given()))

    @functools.cache  # noqa: B019  # a command has one of these objects
    def _followed(self, id_: str) -> FollowedProgress:
        return FollowedProgress(self._service, f"/{kind_of(id_)}/{id_}/progress")
