"""A sheet of numbers in the formats that people paste elsewhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from swingbot.core.model.comparison_row import CHANGED, VERDICTS
from swingbot.core.raw.tables import csv_cell
from swingbot.core.report.parts.lkp_monitors import monitor_rows
from swingbot.core.report.parts.lkp_table import LkpGroup, lkp_lines, lkp_table
from swingbot.core.report.table.grid import legend, places, reading, tables
from swingbot.core.report.table.sheet import Block, Place, Sheet, SheetKernel
from swingbot.core.text.plain import clean, cut
from swingbot_jobs.reading.perf_table import Boot, perf_table

_LONGEST_SUBJECT = 300  # LKP has no limit, but a subject of 10 kB would bury its table
_LONGEST_COMMAND = 400
_COUNTER = "perf-stat."
# perf-stat's rates, ratios and benchmark results of monitored runs, which are not event counts
_NO_COUNTS = ("i.", "ps.", "overall.", "total.", "beside.")
_CSV: Final = (
    *("testbox", "unit_job", "metric", "unit", "better", "kernel", "commit", "subject", "compiler"),
    *("boots", "runs", "mean", "stddev"),
    *("against", "reference", "change_pct", "low_pct", "high_pct", "verdict"),
)


class NothingToShow(ValueError):
    """The sheet lacks the numbers for this format; the message says which."""


def as_text(sheet: Sheet, *, counters: bool = False) -> str:
    """Return all tables, the kernels, differing facts and how to read them, for a terminal."""
    blocks = sheet.shown(counters=counters)
    lines = [
        f"{sheet.id}  {len(sheet.kernels)} kernels of {cut(sheet.tree, 63)}, {sheet.status}"
        + (f": {clean(sheet.reason)}" if sheet.reason else ""),
        *([_private(sheet)] if sheet.private_to is not None else []),
        *legend(sheet),
    ]
    if sheet.differ:
        lines += ["facts that differ:", *(f"  {clean(words)}" for words in sheet.differ)]
    if sheet.blocks and sheet.open:
        lines += ["", "more boots are on the way; these rows are from before they were requested"]
    if blocks:
        lines += ["", *tables(sheet, blocks), "", *places(sheet, blocks), *reading(sheet, blocks)]
    hidden = len(sheet.blocks) - len(blocks)
    if hidden:
        lines += ["", f"{hidden} further metrics of the same runs; --counters shows them"]
    if sheet.unjudged:
        lines += ["", f"left out: {sheet.unjudged} counters; the evidence of others was stronger"]
    return _text(lines)


def _private(sheet: Sheet) -> str:
    names = ", ".join(map(clean, sheet.private_to or ())) or "operators"
    return f"private to {names}; `swingbot publish {sheet.id}` shows it to everybody"


def as_mail(sheet: Sheet) -> str:
    """Return the tables of all headline metrics with kernels, machines, commands and notation.

    Raises NothingToShow.
    """
    blocks = _judged(sheet)
    lines = [*tables(sheet, blocks), "", "The kernels:", "", *legend(sheet), ""]
    return _text([*lines, *places(sheet, blocks), *reading(sheet, blocks)])


def as_changelog(sheet: Sheet) -> str:
    """Return the same for a commit message: what changed, else what did not, else what is unclear.

    Raises NothingToShow.
    """
    blocks = _judged(sheet)
    for verdicts in (CHANGED, ("same",), VERDICTS):
        found = {
            (b.unit_job, b.metric) for b in blocks if any(r.verdict in verdicts for r in b.rows)
        }
        told = [block for block in blocks if (block.unit_job, block.metric) in found]
        if told:
            break
    return _text(
        [*tables(sheet, told), "", *legend(sheet), *places(sheet, told), *reading(sheet, told)]
    )


def as_csv(sheet: Sheet, *, heading: bool = True) -> str:
    """Return one line per kernel, metric and reference. Missing values are empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")

    def write(cells: Sequence[Any]) -> None:
        writer.writerow([csv_cell(cell) for cell in cells])

    if heading:
        write([*_CSV, *sheet.columns])
    names = [clean(kernel.name) for kernel in sheet.kernels]
    kernels = [
        [name, clean(kernel.commit), cut(kernel.subject, _LONGEST_SUBJECT), clean(kernel.compiler)]
        for name, kernel in zip(names, sheet.kernels, strict=True)
    ]
    for block in sheet.blocks:
        head = [block.testbox, block.unit_job, block.metric, block.unit, block.better or ""]
        for kernel, cell in zip(kernels, block.cells, strict=True):
            side = cell.side
            own = [
                *kernel,
                *((side.boots, side.runs, side.mean, side.stddev) if side else (0, 0, "", "")),
            ]
            columns = [cell.columns.get(title, "") for title in sheet.columns]
            if not cell.rows:
                write([*head, *own, *[""] * 6, *columns])
            for rule, row in cell.rows.items():
                low, high = row.interval_pct or ("", "")
                change = [rule, names[row.reference], row.change_pct, low, high, row.verdict]
                write([*head, *own, *change, *columns])
    return out.getvalue()


def as_lkp(sheet: Sheet) -> str:
    """Return LKP's table of each kernel against its reference, by testbox and unit job.

    The benchmark's rows come first, then monitors that changed. Raises NothingToShow.
    """
    blocks = [block for block in sheet.blocks if not block.counter and not block.is_alias]
    output = [
        "".join(f"{line}\n" for line in lines)
        for place in dict.fromkeys(block.place for block in blocks)
        for reference, arm in sheet.pairs
        if (lines := _lkp_pair(sheet, [b for b in blocks if b.place == place], reference, arm))
    ]
    if not output:
        raise NothingToShow(f"{sheet.id} has no metric with runs on both sides")
    return "\n".join(output)


def _lkp_pair(sheet: Sheet, blocks: Sequence[Block], reference: int, arm: int) -> list[str]:
    """Return the table of one pair of kernels at one place; empty without values on both sides."""
    base, head = sheet.kernels[reference], sheet.kernels[arm]
    place = blocks[0].place
    group = LkpGroup(
        base=base.commit,
        base_subject=cut(base.subject, _LONGEST_SUBJECT),
        head=head.commit,
        head_subject=cut(head.subject, _LONGEST_SUBJECT),
        axes=(("tbox_group", place[0]), ("testcase", place[1])),
    )
    found = [block.cells[arm].rows.get(sheet.against[0]) for block in blocks]
    lines = lkp_table(group, [row for row in found if row is not None])
    return [*lines, *_lkp_monitors(sheet, place, reference, arm)] if lines else []


def _lkp_monitors(sheet: Sheet, place: Place, reference: int, arm: int) -> Iterator[str]:
    """Return the monitors' rows, and a count of those that did not fit."""
    base, head = (sheet.runs.get((place, side), {}) for side in (reference, arm))
    own = sheet.programs.get(place[1])
    values = {
        metric: (tuple(base[metric].values()), tuple(head[metric].values()))
        for metric in base
        if metric in head and metric.partition(".")[0] != own
    }
    shown = monitor_rows(values)
    yield from lkp_lines((metric, *values[metric]) for metric in shown.metrics)
    if shown.more:
        hidden = ", ".join(f"{more} of {cut(family, 40)}" for family, more in shown.more.items())
        command = f"`swingbot raw {sheet.id} --out DIR`"
        yield from ("", f"Also changed, not shown: {hidden}. {command} has every sample.")


def as_perf(sheet: Sheet) -> str:
    """Return `perf stat -r` output of each kernel by testbox and unit job, in row order.

    `+-` is the spread over boots. The heading is the command that ran, or the unit job if the
    command is not known. Raises NothingToShow.
    """
    order = list(dict.fromkeys(block.place for block in sheet.blocks))
    found = sorted(
        {place for place, _ in sheet.runs if place not in order}
    )  # unjudged ones come last
    output = []
    for testbox, unit_job in [*order, *found]:
        counts = [_counts(sheet, (testbox, unit_job), arm) for arm in range(len(sheet.kernels))]
        if sum(map(bool, counts)) < 2:
            continue
        command = cut(sheet.commands.get(unit_job) or unit_job, _LONGEST_COMMAND)
        for kernel, boots in zip(sheet.kernels, counts, strict=True):
            if boots:
                heading = f"{cut(kernel.name, 63)}: {_commit(kernel)}, on {cut(testbox, 63)}"
                output.append(f"{heading}\n\n{perf_table(boots, command)}")
    if not output:
        raise NothingToShow(
            f"{sheet.id} has no perf stat counters on both sides;"
            " `--format lkp` has the benchmarks' own numbers"
        )
    return "\n".join(output)


def _counts(sheet: Sheet, place: Place, arm: int) -> tuple[Boot, ...]:
    """Return the event counts of each run, by boot."""
    boots: dict[str, dict[int, dict[str, float]]] = {}
    for metric, values in sheet.runs.get((place, arm), {}).items():
        event = metric.removeprefix(_COUNTER)
        if event != metric and not event.startswith(_NO_COUNTS):
            for (boot, run), value in values.items():
                boots.setdefault(boot, {}).setdefault(run, {})[event] = value
    return tuple(tuple(runs[run] for run in sorted(runs)) for runs in boots.values())


def _judged(sheet: Sheet) -> list[Block]:
    if not sheet.blocks:
        raise NothingToShow(
            f"{sheet.id} has no rows yet; `swingbot wait {sheet.id}` waits for them"
        )
    return sheet.shown()


FORMS: Final[Mapping[str, Callable[[Sheet], str]]] = {
    "text": as_text,
    "mail": as_mail,
    "changelog": as_changelog,
    "csv": as_csv,
    "lkp": as_lkp,
    "perf": as_perf,
}
# Formats of the headline metrics alone
HEADLINES: Final = ("mail", "changelog")
# Metrics whose runs a format needs, as LIKE patterns
SAMPLES: Final[Mapping[str, tuple[str, ...]]] = {"lkp": ("%",), "perf": (f"{_COUNTER}%",)}


def _commit(kernel: SheetKernel) -> str:
    return f'{clean(kernel.commit)[:12]} ("{cut(kernel.subject, 120)}")'


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)
