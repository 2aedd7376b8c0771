"""How far a table or bisection is: what those read who wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from swingbot.core.model import ids
from swingbot.core.model.answer_documents import ProgressOfARequest
from swingbot.core.model.documents import Bisection, Table
from swingbot.core.report.progress import progress_of_bisection, progress_of_table


class ProgressReads(Protocol):
    """Read models, each given an open connection."""

    def table(self, conn: Any, id: int | str, metrics: Sequence[str] | None = None) -> Table: ...
    def bisection(self, conn: Any, id: int | str) -> Bisection: ...


def progress(read: ProgressReads, conn: Any, id_: str) -> ProgressOfARequest:
    """Return the progress of `c5`, `e6` or `b2`. Raises BadId, NotFound."""
    if ids.read(id_)[0] == "bisection":
        return progress_of_bisection(read.bisection(conn, id_))
    return progress_of_table(read.table(conn, id_, []))  # no rows
