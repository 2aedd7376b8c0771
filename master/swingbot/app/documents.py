"""What commands show of a service: its documents, and the texts that it makes of them.

`app/database_documents.py` reads them from the database of this host,
`app/remote/http_documents.py` from a service elsewhere. Both answer with the same bytes
(`tests/db/test_remote.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from swingbot.core.model import ids
from swingbot.service.ports import RequestError

if TYPE_CHECKING:
    from swingbot.core.model.upkeep_documents import Cover
    from swingbot.service.report.results_query import HistoryQuery, ResultsQuery

Facts = dict[str, Any]
PLURALS: Final = (
    "bisections",
    "comparisons",
    "experiments",
    "incidents",
    "metrics",
    "orders",
    "reports",
    "testboxes",
    "trees",
)
# The keys of FORMS of `core/report/table/formats.py`, which takes long to import.
FORMS: Final = ("changelog", "csv", "lkp", "mail", "perf", "text")
KINDS: Final = (*ids.WITH_NUMBERS, "order", "variant", "boot")


class ServiceAway(OSError):
    """The service does not answer at the moment."""


class Documents(Protocol):
    """Each method raises RequestError or NotFound for what the service does not have."""

    @property
    def url(self) -> str:
        """Address of the pages, without a slash at its end."""
        ...

    def status(self) -> Facts: ...
    def listing(self, plural: str, filters: Mapping[str, str], limit: int) -> list[Facts]: ...
    def document(self, id_: str) -> Facts:
        """The document of an id such as `c5`; of a table with what it did to the kernel."""
        ...

    def progress(self, id_: str) -> Facts:
        """How far a table or bisection is: a `ProgressOfARequest`."""
        ...

    def news(self, id_: str, seconds: float) -> Facts | None:
        """Its progress after `seconds`, or as soon as it changed; None: it has not changed."""
        ...

    def shown(self, id_: str, *, counters: bool) -> str:
        """A table as `swingbot show` prints it."""
        ...

    def printed(self, id_: str, form: str) -> str:
        """Numbers in one of the FORMS."""
        ...

    def bisection_log(self, id_: str, *, people: bool) -> str:
        """The log of a bisection; without `people` only the records, as JSON lines."""
        ...

    def explanation(self, id_: str) -> Facts:
        """What a bisection believes and why."""
        ...

    def open_work(self) -> Facts: ...
    def mail_switch(self) -> tuple[Facts, bool]:
        """The switch that stops all mail, and whether a setting stops it, too."""
        ...

    def report_classes(self) -> tuple[list[Facts], str]:
        """Classes of reports with their records, and the setting `mail.release`."""
        ...

    def recipients(self, tree: str, commit: str, base: str | None) -> Facts:
        """Who would get a report about a commit: a `Recipients`."""
        ...

    def results(self, query: ResultsQuery) -> Facts:
        """Kernels compared by boots that exist; for fewer than two, those that have boots."""
        ...

    def posted(self, mails: Sequence[str], patches: Sequence[str]) -> list[Facts]:
        """Commits that were posted as one of at most QUERY_VALUES mails, or have the patch-id of
        one of so many patches, and their tables.
        """
        ...

    def cover(self, tree: str, target: str) -> Cover:
        """What runs the code of a path or commit of a tree."""
        ...

    def history(self, query: HistoryQuery) -> Facts:
        """A metric over the measured commits of a tree."""
        ...


def kind_with_numbers(id_: str) -> str:
    """Return the kind of an id that has numbers. Raises BadId, RequestError."""
    kind, _ = ids.read(id_)
    if kind not in ids.WITH_NUMBERS:
        raise RequestError(
            f"{id_} has no numbers; give a comparison (c5), experiment (e6), bisection (b2),"
            " incident (i1) or report (r4)"
        )
    return kind


def kind_of(id_: str) -> str:
    """Return the kind of an id that can be shown. Raises BadId, RequestError."""
    kind, _ = ids.read(id_)
    if kind not in KINDS:
        raise RequestError(f"{id_} cannot be shown; use `swingbot tree list` to see trees")
    return kind
