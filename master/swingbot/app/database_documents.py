"""The documents of the service on this host, read from its database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, cast

from swingbot.app import sheets
from swingbot.app.documents import Facts, kind_of
from swingbot.app.keep.health_check import database_problem, problems_here, seems_to_run
from swingbot.app.settings import Settings
from swingbot.core.model import ids
from swingbot.core.model.dispatch import DatabaseAway
from swingbot.core.model.documents import Bisection, Table
from swingbot.core.model.upkeep_documents import Cover
from swingbot.service.kernel.bisected_config import config_changes
from swingbot.service.ports import Lab, RequestError
from swingbot.service.report.progress import progress
from swingbot.service.report.results_query import HistoryQuery, ResultsQuery
from swingbot.service.report.table_sheet import explain
from swingbot_db import read
from swingbot_db.engine import Connection, away
from swingbot_db.probe import ANSWER_SECONDS
from swingbot_jobs.language.job_files import shipped

Reading = Callable[..., AbstractContextManager[Connection]]
_ONE: Final[Mapping[str, Any]] = {
    **dict.fromkeys(ids.TABLES, read.table),
    "bisection": read.bisection,
    "incident": read.incident,
    "report": read.report,
    "order": read.order,
    "variant": read.variant,
    "boot": read.boot,
}


class DatabaseDocuments:
    """Implements `Documents`. `reading` opens a snapshot, with a limit of seconds a statement;
    `lab` is created for what needs it.
    """

    def __init__(
        self, settings: Settings, url: str, reading: Reading, lab: Callable[[], Lab]
    ) -> None:
        self.url, self._settings, self._reading, self._lab = url, settings, reading, lab
        self._kernels = sheets.kernel_records(settings)

    def status(self) -> Facts:
        """The state of the service; problems alone if its database does not answer in time."""
        if seems_to_run(self._settings) and (why := database_problem(self._settings)):
            return self._problems_alone(why)
        try:
            with away(), self._reading(ANSWER_SECONDS) as conn:
                facts: Facts = read.status(conn)
        except DatabaseAway as error:
            return self._problems_alone(str(error))
        facts["problems"] = problems_here(self._settings) + facts["problems"]
        return facts

    def _problems_alone(self, why: str) -> Facts:
        return {"problems": [{"text": why, "link": None}, *problems_here(self._settings)]}

    def listing(self, plural: str, filters: Mapping[str, str], limit: int) -> list[Facts]:
        with self._reading() as conn:
            try:
                found: list[Facts] = getattr(read, f"list_{plural}")(conn, filters, limit)
            except ValueError as error:
                raise RequestError(str(error)) from None
        return found

    def document(self, id_: str) -> Facts:
        kind = kind_of(id_)
        with self._reading() as conn:
            facts: Facts = _ONE[kind](conn, id_)
            if kind in ids.TABLES:
                explain(read, self._kernels, conn, cast(Table, facts))
            if kind == "bisection":
                document = cast(Bisection, facts)
                facts["config_changes"] = config_changes(read, self._kernels, conn, document)
        return facts

    def progress(self, id_: str) -> Facts:
        with self._reading() as conn:
            return cast(Facts, progress(read, conn, id_))

    def news(self, id_: str, seconds: float) -> Facts:
        time.sleep(seconds)
        return self.progress(id_)

    def shown(self, id_: str, *, counters: bool) -> str:
        with self._reading() as conn:
            return sheets.shown(conn, id_, self._kernels, counters=counters)

    def printed(self, id_: str, form: str) -> str:
        with self._reading() as conn:
            return sheets.printed(conn, id_, form, self._kernels)

    def bisection_log(self, id_: str, *, people: bool) -> str:
        from swingbot.core.bisect.tell import logbook
        from swingbot.service.bisect import steer

        number = ids.read(id_, "bisection")[1]
        return logbook.written(steer.logbook(self._lab().transaction, number), people=people)

    def explanation(self, id_: str) -> Facts:
        from swingbot.service.bisect.explain import explanation

        return explanation(self._lab().transaction, ids.read(id_, "bisection")[1])

    def open_work(self) -> Facts:
        with self._reading() as conn:
            return read.open_work(conn)

    def mail_switch(self) -> tuple[Facts, bool]:
        with self._reading() as conn:
            return read.switch(conn), self._settings.mail.stop

    def report_classes(self) -> tuple[list[Facts], str]:
        with self._reading() as conn:
            return read.report_classes(conn), self._settings.mail.release

    def recipients(self, tree: str, commit: str, base: str | None) -> Facts:
        from swingbot.service.report.foresee_recipients import foresee_recipients

        return cast(Facts, foresee_recipients(self._lab(), tree, commit, base))

    def results(self, query: ResultsQuery) -> Facts:
        from swingbot.service.report.existing_results import ExistingResults

        found = ExistingResults(
            read=read,
            reading=self._reading,
            lab=self._lab,
            job_files=lambda: shipped(Path(self._settings.paths.jobs)),
        )
        return found.document(query)

    def posted(self, mails: Sequence[str], patches: Sequence[str]) -> list[Facts]:
        with self._reading() as conn:
            return read.posted(conn, mails, patches)

    def cover(self, tree: str, target: str) -> Cover:
        from swingbot.service.report.job_cover import JobCover

        cover = JobCover(read=read, reading=self._reading, kernels=self._kernels, lab=self._lab)
        return cover.of(tree, target)

    def history(self, query: HistoryQuery) -> Facts:
        from swingbot.service.report.metric_document import MetricHistories

        return MetricHistories(read=read, reading=self._reading, lab=self._lab).document(query)
