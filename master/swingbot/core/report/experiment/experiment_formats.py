"""An experiment in the formats that people paste elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Final

from swingbot.core.report.experiment.experiment_sheet import ExperimentSheet
from swingbot.core.report.experiment.table import legend, reading, table
from swingbot.core.report.formats.sheet_formats import NothingToShow
from swingbot.core.report.parts.lkp_table import LkpGroup, lkp_table
from swingbot.core.report.report_facts import Commit
from swingbot.core.text.plain import clean, cut

_CSV: Final = (
    "testbox",
    "unit_job",
    "metric",
    "unit",
    "better",
    "kernel",
    "commit",
    "compiler",
    "boots",
    "runs",
    "mean",
    "stddev",
    "against",
    "reference",
    "change_pct",
    "low_pct",
    "high_pct",
    "verdict",
)


def as_text(sheet: ExperimentSheet, *, counters: bool = False) -> str:
    """Return all tables, the kernels and the notes on reading them, for a terminal."""
    lines = [
        f"{sheet.id}  {len(sheet.kernels)} kernels of {cut(sheet.tree, 63)}, {sheet.status}"
        + (f": {clean(sheet.reason)}" if sheet.reason else ""),
        *legend(sheet),
    ]
    if sheet.blocks and sheet.status in ("waiting", "running"):
        lines += ["", "more boots are on the way; these rows are from before they were requested"]
    if sheet.blocks:
        lines += ["", *table(sheet, counters=counters), "", *reading(sheet)]
    hidden = len(sheet.blocks) - len(sheet.shown(counters=counters))
    if hidden:
        lines += ["", f"{hidden} further metrics of the same runs; --counters shows them"]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def as_mail(sheet: ExperimentSheet) -> str:
    """Return the tables of all headline metrics with legend and reading notes.

    Raises NothingToShow.
    """
    _refuse_empty(sheet)
    lines = [*table(sheet), "", "The kernels:", "", *legend(sheet), "", *reading(sheet)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def as_changelog(sheet: ExperimentSheet) -> str:
    """Return only the tables, for a commit message. Raises NothingToShow."""
    _refuse_empty(sheet)
    return "".join(f"{line.rstrip()}\n" for line in table(sheet))


def as_csv(sheet: ExperimentSheet) -> str:
    """Return one line per kernel, metric and reference. Missing values are empty."""
    out = io.StringIO()
    write = csv.writer(out, lineterminator="\n")
    write.writerow([*_CSV, *sheet.columns])
    for block in sheet.blocks:
        head = [block.testbox, block.unit_job, block.metric, block.unit, block.better or ""]
        for kernel, cell in zip(sheet.kernels, block.cells, strict=True):
            side = cell.side
            own = [
                *(clean(text) for text in (kernel.name, kernel.commit, kernel.compiler)),
                *((side.boots, side.runs, side.mean, side.stddev) if side else (0, 0, "", "")),
            ]
            beside = [cell.beside.get(column, "") for column in sheet.columns]
            if not cell.rows:
                write.writerow([*head, *own, *[""] * 6, *beside])
            for rule, row in cell.rows.items():
                low, high = row.interval_pct or ("", "")
                reference = clean(sheet.kernels[row.reference].name)
                change = [rule, reference, row.change_pct, low, high, row.verdict]
                write.writerow([*head, *own, *change, *beside])
    return out.getvalue()


def as_lkp(sheet: ExperimentSheet) -> str:
    """Return LKP's table of each kernel against its reference, by testbox and unit job.

    Raises NothingToShow.
    """
    _refuse_empty(sheet)
    tables = []
    places = list(dict.fromkeys(block.place for block in sheet.blocks))
    for testbox, unit_job in places:
        axes = (("tbox_group", testbox), ("testcase", unit_job))
        for arm, kernel in enumerate(sheet.kernels):
            rows = [
                row
                for block in sheet.blocks
                if block.place == (testbox, unit_job)
                and not block.counter
                and (row := block.cells[arm].rows.get(sheet.against[0])) is not None
            ]
            if not rows:
                continue
            other = sheet.kernels[rows[0].reference]
            base, head = (
                Commit(sha=one.commit, subject=one.subject, author="") for one in (other, kernel)
            )
            group = LkpGroup(
                base=base.sha,
                base_subject=cut(base.subject, 80),
                head=head.sha,
                head_subject=cut(head.subject, 80),
                axes=axes,
            )
            tables.append("".join(f"{line}\n" for line in lkp_table(group, rows)))
    output = "\n".join(one for one in tables if one)
    if not output:
        raise NothingToShow(f"{sheet.id} has no metric with runs on both sides")
    return output


def _refuse_empty(sheet: ExperimentSheet) -> None:
    if not sheet.blocks:
        raise NothingToShow(
            f"{sheet.id} has no rows yet; `swingbot wait {sheet.id}` waits for them"
        )


EXPERIMENT_FORMS: Final[Mapping[str, Callable[[ExperimentSheet], str]]] = {
    "text": as_text,
    "mail": as_mail,
    "changelog": as_changelog,
    "csv": as_csv,
    "lkp": as_lkp,
}
