"""Ports of the pages: read models and settings. The database and the settings provide them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import sqlalchemy as sa

from swingbot.core.model.change_documents import TableOfChanges
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.documents import Bisection, Gate, Incident, Table
from swingbot.core.model.list_documents import QueueEnd
from swingbot.service.ports.kernels import KernelRecords
from swingbot.service.report.existing_results import ResultReads
from swingbot.service.report.job_cover import CountedCalls
from swingbot.service.report.metric_document import MetricReads
from swingbot.service.report.table_sheet import WhyReads

Connection = sa.Connection
Engine = sa.Engine
DatabaseError = sa.exc.SQLAlchemyError
DatabaseAway = sa.exc.OperationalError  # the server does not respond, or cancels a query
DatabaseBusy = sa.exc.TimeoutError  # all connections of the pool are in use
Row = dict[str, Any]
Reading = Callable[[], AbstractContextManager[Connection]]  # opens a connection
Filters = Mapping[str, Any] | None


class PageSettings(Protocol):
    """The few settings that pages depend on (`app/settings.py`)."""

    @property
    def web_url(self) -> str: ...
    @property
    def buildbot_url(self) -> str: ...


class QueueReads(Protocol):
    def queue_end(self, conn: Connection) -> QueueEnd: ...


class ReadModels(ResultReads, MetricReads, WhyReads, CountedCalls, QueueReads, Protocol):
    """The module `swingbot_db.read`: each function returns a document or raises NotFound.

    Those that use cases call too are in the protocols of these.
    """

    def check(self, engine: Engine) -> None: ...  # DatabaseAway within seconds, or nothing
    def status(self, conn: Connection) -> Row: ...
    def search(self, conn: Connection, query: str, kind: str = "", after: str = "") -> Row: ...
    def person(self, conn: Connection, who: str, limit: int, after: str = "") -> Row: ...
    def posted(
        self, conn: Connection, mails: Sequence[str], patches: Sequence[str]
    ) -> list[Row]: ...
    def tokens(
        self, conn: Connection, *, over: bool = False, who: str | None = None
    ) -> list[Row]: ...
    def table(
        self,
        conn: Connection,
        id: int | str,
        metrics: Sequence[str] | None = None,
        *,
        after: str | None = None,
    ) -> Table: ...
    def metric_of_table(
        self, conn: Connection, id: int | str, metric: str, unit_job: str
    ) -> Row | None: ...
    def headline_metrics_of_table(self, conn: Connection, id: int | str) -> list[Row]: ...
    def other_metrics_of_table(self, conn: Connection, id: int | str, after: str = "") -> Row: ...
    def with_aliases(
        self, conn: Connection, id: int | str, metrics: Sequence[str]
    ) -> list[str]: ...
    def judged_in_table(self, conn: Connection, id: int | str) -> Row: ...
    def measured_in_table(self, conn: Connection, id: int | str) -> list[Row]: ...
    def bisection(self, conn: Connection, id: int | str) -> Bisection: ...
    def incident(self, conn: Connection, id: int | str) -> Incident: ...
    def report(self, conn: Connection, id: int | str) -> Row: ...
    def gates(self, conn: Connection, incident: int | str) -> list[Gate]: ...
    def history(
        self,
        conn: Connection,
        *,
        tree: str,
        testbox: str,
        unit_job: str,
        metric: str,
        also: Iterable[str] = (),
    ) -> list[Row]: ...
    def known_names(self, conn: Connection, testbox: str, joined: str) -> tuple[str, str]: ...
    def order(self, conn: Connection, id: int | str) -> Row: ...
    def boot(
        self, conn: Connection, id: int | str, *, samples: bool = True, after: str | None = None
    ) -> Row: ...
    def metrics_of_boot(self, conn: Connection, id: int | str) -> list[Row]: ...
    def first_samples_of_boot(
        self, conn: Connection, id: int | str, metrics: list[str], *, each: int, most: int
    ) -> list[Row]: ...
    def kernel(self, conn: Connection, key: str) -> Row: ...
    def variant(self, conn: Connection, id: int | str) -> Row: ...
    def tree(self, conn: Connection, name: str) -> Row: ...
    def tree_news(self, conn: Connection, name: str) -> list[Row]: ...
    def testbox_news(self, conn: Connection, name: str) -> list[Row]: ...
    def raw_manifest(self, conn: Connection, id: str) -> Row: ...
    def sample_pages(self, reading: Reading, id: str) -> Iterator[list[Row]]: ...
    def list_choices(self, conn: Connection, plural: str) -> dict[str, list[str]]: ...
    def table_of_changes(self, conn: Connection, id: int | str) -> TableOfChanges: ...
    def list_of_changes(
        self,
        conn: Connection,
        plural: str,
        filters: Filters = None,
        limit: int = 50,
        after: str = "",
    ) -> ListPiece: ...
    def list_comparisons(
        self, conn: Connection, filters: Filters = None, limit: int = 50, after: str = ""
    ) -> ListPiece: ...
    def list_experiments(
        self, conn: Connection, filters: Filters = None, limit: int = 50, after: str = ""
    ) -> ListPiece: ...
    def list_bisections(
        self, conn: Connection, filters: Filters = None, limit: int = 50, after: str = ""
    ) -> ListPiece: ...
    def list_incidents(
        self, conn: Connection, filters: Filters = None, limit: int = 50, after: str = ""
    ) -> ListPiece: ...
    def list_reports(
        self, conn: Connection, filters: Filters = None, limit: int = 50, after: str = ""
    ) -> ListPiece: ...
    def list_orders(
        self, conn: Connection, filters: Filters = None, limit: int = 100, after: str = ""
    ) -> ListPiece: ...
    def list_compilers(
        self, conn: Connection, filters: Filters = None, limit: int = 500, after: str = ""
    ) -> ListPiece: ...
    def list_testboxes(
        self, conn: Connection, filters: Filters = None, limit: int = 200, after: str = ""
    ) -> ListPiece: ...
    def list_trees(
        self, conn: Connection, filters: Filters = None, limit: int = 100, after: str = ""
    ) -> ListPiece: ...
    def list_metrics(
        self, conn: Connection, filters: Filters = None, limit: int = 500, after: str = ""
    ) -> ListPiece: ...


class OpenArtifact(Protocol):
    """`adapters.artifacts.Artifacts(...).open`: open the file with this sha256, seekable.

    Raises FileNotFoundError, ArtifactError for a damaged file, ValueError for an invalid sha256.
    """

    def __call__(self, sha256: str) -> BinaryIO: ...


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The artifact store: a file of it, and what the records of two builds in it say."""

    open: OpenArtifact
    kernels: KernelRecords
