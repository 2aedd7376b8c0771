"""Print the numbers of a table, bisection, incident or report in any format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.kernel_reader import ChildKernelRecords
from swingbot.app.documents import kind_with_numbers
from swingbot.app.settings import Settings
from swingbot.core.model import ids
from swingbot.core.report.parts.swings import swing_lines
from swingbot.core.report.parts.why import why_lines
from swingbot.core.report.table.formats import FORMS, HEADLINES, NothingToShow, as_csv, as_text
from swingbot.core.report.table.sheet import Sheet, sheet_of_bisection
from swingbot.service.ports import RequestError
from swingbot.service.ports.kernels import KernelRecords
from swingbot.service.report.table_sheet import explain, sheet_of
from swingbot_db import read
from swingbot_db.engine import Connection
from swingbot_jobs.kernel_diff import change_text, config_part

Connect = Callable[[], AbstractContextManager[Connection]]


def kernel_records(settings: Settings) -> KernelRecords:
    """Compares the builds in the artifact store."""
    return ChildKernelRecords(ArtifactDirectory(settings.artifacts).open)


def shown(conn: Connection, id_: str, kernels: KernelRecords, *, counters: bool) -> str:
    """Format a table for a terminal, and below it what each row changed in the kernel of its
    reference.
    """
    document = read.table(conn, id_)
    explain(read, kernels, conn, document)
    sheet = sheet_of(read, kernels, conn, document)
    beside = why_lines(document["why"], [kernel.name for kernel in sheet.kernels])
    swings = swing_lines(document["rows"])
    return "\n".join(
        [
            as_text(sheet, counters=counters),
            *("\n".join([*lines, ""]) for lines in (swings, beside) if lines),
            *(_changed(sheet, one) for one in document["kernel_changes"]),
        ]
    )


def _changed(sheet: Sheet, facts: dict[str, Any]) -> str:
    names = " to ".join(sheet.kernels[facts[side]].name for side in ("reference", "arm"))
    compared = facts["state"] == "compared"
    body = change_text(facts, most=20) if compared else facts["reason"]
    if not compared and facts["config"]:
        body = "\n".join([body, *config_part(facts["config"], most=20)])
    return f"What the change from {names} did to the kernel\n{body}\n"


def printed(conn: Connection, id_: str, form: str, kernels: KernelRecords) -> str:
    """Format the numbers of `id_` as `form`, one of FORMS. Raises RequestError."""
    try:
        return FORMS[form](_sheet_of(conn, id_, form, kernels))
    except NothingToShow as error:
        raise RequestError(str(error)) from None


def csv_pieces(connect: Connect, id_: str, kernels: KernelRecords) -> Iterator[str]:
    """Format the numbers of `id_` as CSV, some metrics at a time, each with its own connection.

    The first piece raises RequestError.
    """
    with connect() as conn:
        table = _table_of(conn, id_)
        if table is None:
            yield as_csv(_of_bisection(conn, id_))
            return
        pieces = read.metric_pieces(conn, table)
    for at, metrics in enumerate(pieces or [[]]):
        with connect() as conn:
            document = read.table(conn, table, metrics)
            sheet = sheet_of(read, kernels, conn, document, form="csv", id_=id_)
        yield as_csv(sheet, heading=at == 0)


def _sheet_of(conn: Connection, id_: str, form: str, kernels: KernelRecords) -> Sheet:
    """Build the sheet of `id_`.

    Reports and incidents use the table of culprit and parent; a bisection uses its own boots until
    that table exists. Raises RequestError for a kind without numbers and for a bisection without a
    culprit.
    """
    table = _table_of(conn, id_)
    if table is None:
        return _of_bisection(conn, id_)
    metrics = read.headlines_of_table(conn, table) if form in HEADLINES else None
    document = read.table(conn, table, metrics)
    return sheet_of(read, kernels, conn, document, form=form, id_=id_)


def _table_of(conn: Connection, id_: str) -> str | None:
    """Return the table with the numbers of `id_`; None: its own boots. Raises RequestError."""
    kind = kind_with_numbers(id_)
    return id_ if kind in ids.TABLES else _table_behind(conn, kind, id_)


def _table_behind(conn: Connection, kind: str, id_: str) -> str | None:
    """Return the comparison of culprit and parent; None for a bisection that has none yet."""
    incident = id_ if kind == "incident" else _incident_of(conn, kind, id_)
    comparison: str | None = read.incident(conn, incident)["comparison"] if incident else None
    if comparison is None and kind != "bisection":
        raise RequestError(f"{id_}: the commit has not been compared with its parent yet")
    return comparison


def _incident_of(conn: Connection, kind: str, id_: str) -> str | None:
    document = read.report(conn, id_) if kind == "report" else read.bisection(conn, id_)
    incident: str | None = document.get("incident")
    return incident


def _of_bisection(conn: Connection, id_: str) -> Sheet:
    bisection = read.bisection(conn, id_)
    sheet = sheet_of_bisection(bisection)
    if sheet is None:
        raise RequestError(
            f"{id_} is {bisection['status']}: it has no culprit that was measured together with its"
            f" parent; see `swingbot show {id_}`"
        )
    return sheet
