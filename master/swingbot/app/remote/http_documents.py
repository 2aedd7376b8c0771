"""The documents of a service elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast
from urllib.parse import urlencode

from swingbot.app.documents import Facts, kind_of, kind_with_numbers
from swingbot.app.remote.connection import Connection, ServiceError
from swingbot.app.remote.login import Login
from swingbot.core.model import ids
from swingbot.service.report.results_query import HistoryQuery, ResultsQuery


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
        return cast(Facts, self._service.json("/status.json"))

    def listing(self, plural: str, filters: Mapping[str, str], limit: int) -> list[Facts]:
        return self._service.rows(f"/{plural}.json", filters, limit)

    def document(self, id_: str) -> Facts:
        facts = self.progress(id_)
        while after := facts.get("next"):
            piece = self._service.json(self._path(id_), {"after": after})
            if piece["next"] == after:
                raise ServiceError(f"{self.url} answers again with the same piece of {id_}")
            _append(facts, piece)
            facts["next"] = piece["next"]
        return facts

    def progress(self, id_: str) -> Facts:
        return cast(Facts, self._service.json(self._path(id_)))

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
        return cast(Facts, self._service.json(f"/bisection/{id_}/explanation.json"))

    def open_work(self) -> Facts:
        facts = self.status()
        return {"idle": facts["idle"], "open": facts["open"]}

    def results(self, query: ResultsQuery) -> Facts:
        return cast(Facts, self._service.json(query.address(".json")))

    def posted(self, mails: Sequence[str]) -> list[Facts]:
        query = urlencode([("mail", mail) for mail in mails])
        return cast(list[Facts], self._service.json(f"/posted.json?{query}"))

    def history(self, query: HistoryQuery) -> Facts:
        return cast(Facts, self._service.json("/metric.json", query.given()))

    def _path(self, id_: str) -> str:
        return f"/{kind_of(id_)}/{id_}.json"
