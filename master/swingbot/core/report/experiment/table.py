"""The table of an experiment as plain text in 78 columns, fit for a commit message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import Reference
from swingbot.core.report.experiment.experiment_sheet import (
    Block,
    Cell,
    ExperimentSheet,
    SheetKernel,
)
from swingbot.core.table.references import in_words
from swingbot.core.text.numbers import levels, readings, rounded_up
from swingbot.core.text.plain import WIDTH, columns, cut, wrap

_INDENT: Final = "  "
_GAP: Final = "  "
_NAME: Final = 24  # columns for the name of a kernel
_MISSING: Final = "-"
_PLAIN: Final = re.compile(r"no change above [0-9.e-]+ (%|points)")  # already in the cell

Grid = list[list[str]]  # cells by row, header first; the first column is the kernel


def table(sheet: ExperimentSheet, *, counters: bool = False) -> list[str]:
    """Return all blocks, one below the other.

    A metric measured on several testboxes becomes one grid of kernels by testboxes.
    """
    lines: list[str] = []
    for blocks in _by_metric(sheet.shown(counters=counters)):
        grid = _across(sheet, blocks) if len(blocks) > 1 and len(sheet.against) == 1 else None
        if grid is not None and _width(grid) <= WIDTH:
            lines += ["", *_head(blocks[0], [block.testbox for block in blocks]), *_lines(grid)]
            lines += _notes(sheet, blocks)
            continue
        for block in blocks:
            lines += ["", *_head(block, [block.testbox]), *_lines(down(sheet, block))]
            lines += _notes(sheet, [block])
    for below in sheet.below:
        lines += ["", *wrap(below.heading), *below.lines]
    return lines[1:]


def down(sheet: ExperimentSheet, block: Block) -> Grid:
    """Tabulate one testbox: kernel, level, sd, changes with intervals, additional columns."""
    heads = ["kernel", block.unit or "level", "sd"]
    for rule in sheet.against:
        heads += [f"vs {_short(rule)}", "95 % interval"]
    means = levels(*(cell.side.mean if cell.side else None for cell in block.cells))
    beside = {
        column: readings(*(cell.beside.get(column) for cell in block.cells))
        for column in sheet.columns
        if any(column in cell.beside for cell in block.cells)
    }
    grid = [[*heads, *beside]]
    for place, (kernel, cell) in enumerate(zip(sheet.kernels, block.cells, strict=True)):
        line = [cut(kernel.name, _NAME), *_level(kernel, cell, means[place])]
        for rule in sheet.against:
            line += change_and_interval(cell.rows.get(rule))
        grid.append([*line, *(texts[place] or _MISSING for texts in beside.values())])
    return grid


def _across(sheet: ExperimentSheet, blocks: Sequence[Block]) -> Grid:
    """Tabulate several testboxes: a level and a change for each."""
    rule = sheet.against[0]
    means = [
        levels(*(cell.side.mean if cell.side else None for cell in block.cells)) for block in blocks
    ]
    grid = [["kernel", *(text for block in blocks for text in (cut(block.testbox, 20), ""))]]
    for place, kernel in enumerate(sheet.kernels):
        line = [cut(kernel.name, _NAME)]
        for block, texts in zip(blocks, means, strict=True):
            cell = block.cells[place]
            line += [_level(kernel, cell, texts[place])[0], _marked(cell.rows.get(rule))]
        grid.append(line)
    return grid


def change_and_interval(row: ComparisonRow | None) -> list[str]:
    """Return `+5.6 %` and `+5.1 .. +6.0`, or the verdict where no change is claimed."""
    if row is None:
        return ["", ""]
    bounds = row.interval_pct
    interval = f"{bounds[0]:+.1f} .. {bounds[1]:+.1f}" if bounds else ""
    return [_marked(row), interval]


def _marked(row: ComparisonRow | None) -> str:
    """Return a claimed change with its sign, an unclear one in parentheses, or the verdict."""
    if row is None:
        return ""
    if row.verdict == "invalid" or row.change_pct is None:
        return "invalid" if row.verdict == "invalid" else row.verdict
    if row.verdict == "same":
        return "=" if row.margin_pct is None else f"= {rounded_up(row.margin_pct):g} %"
    text = f"{row.change_pct:+.1f} %"
    return f"({text})" if row.verdict == "unclear" else text


def _level(kernel: SheetKernel, cell: Cell, mean: str) -> list[str]:
    if kernel.trouble is not None:
        return ["no kernel", ""]
    if cell.side is None or cell.side.mean is None:
        return [_MISSING, ""]
    return [mean.strip(), _sd(cell)]


def _sd(cell: Cell) -> str:
    """Return the standard deviation between boots in percent of the level.

    Absolute if the level is zero.
    """
    side = cell.side
    if side is None or side.stddev is None or side.mean is None:
        return ""
    if side.mean == 0:
        return f"{side.stddev:.3g}"
    return f"{100 * side.stddev / abs(side.mean):.1f} %"


def _by_metric(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Group the blocks of each unit job and metric."""
    groups: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        groups.setdefault((block.unit_job, block.metric), []).append(block)
    yield from groups.values()


def _head(block: Block, testboxes: Sequence[str]) -> list[str]:
    better = f", {block.better} is better" if block.better else ""
    unit = f" [{block.unit}{better}]" if block.unit or better else ""
    where = ", ".join(cut(name, 63) for name in testboxes)
    label = f" ({block.label})" if block.label else ""
    return wrap(f"{block.metric}{unit} of {block.unit_job} on {where}{label}", _INDENT, "")


def _notes(sheet: ExperimentSheet, blocks: Sequence[Block]) -> list[str]:
    """Return what does not fit a cell: why a row is unclear or invalid, and notes on changes."""
    notes: list[str] = []
    for block in blocks:
        for kernel, cell in zip(sheet.kernels, block.cells, strict=True):
            differ = len({(row.verdict, row.reason) for row in cell.rows.values()}) > 1
            for rule, row in cell.rows.items():
                if row.reason and kernel.trouble is None and not _PLAIN.fullmatch(row.reason):
                    where = f" on {block.testbox}" if len(blocks) > 1 else ""
                    where += f" vs {_short(rule)}" if differ else ""
                    notes.append(f"{cut(kernel.name, _NAME)}{where}: {row.verdict}, {row.reason}")
        notes += _other_levels(sheet, block)
    # With several references, a note may occur twice.
    return [line for note in dict.fromkeys(notes) for line in wrap(note, _INDENT * 2, _INDENT)]


def _other_levels(sheet: ExperimentSheet, block: Block) -> Iterator[str]:
    """Name the rows whose reference level differs from its own row.

    Outlier boots are excluded per pair, so the level of a reference depends on the pair.
    """
    for kernel, cell in zip(sheet.kernels, block.cells, strict=True):
        for row in cell.rows.values():
            own = block.cells[row.reference].side
            if own is None or own.mean is None or row.base.mean is None:
                continue
            shown, used = levels(own.mean, row.base.mean)
            if shown != used:
                reference = cut(sheet.kernels[row.reference].name, _NAME)
                name = cut(kernel.name, _NAME)
                yield f"{name}: {reference} is {used.strip()} in this pair (outliers excluded)"


def legend(sheet: ExperimentSheet) -> list[str]:
    """Describe the rows: commit and subject of each kernel, and why a kernel is missing."""
    lines = []
    for kernel in sheet.kernels:
        text = f"{cut(kernel.name, 40)}  {kernel.commit[:12]} {kernel.subject}"
        if kernel.incident is not None:
            text += f" (culprit of incident {kernel.incident})"
        if kernel.trouble is not None:
            text += f" -- no kernel: {kernel.trouble}"
        lines += wrap(text, _INDENT * 2, _INDENT)
    return lines


def reading(sheet: ExperimentSheet) -> list[str]:
    """Explain how to read the table."""
    rules = " and ".join(in_words(rule) for rule in sheet.against)
    return wrap(
        f"Changes are relative to {rules}. The intervals of one metric hold jointly at 95 %. At"
        " most 0.5 % of tables claim a change in the wrong direction; there is no correction"
        " across metrics. sd is between boots. '= N %' excludes a change above N %; a change in"
        " parentheses is not clear."
    )


def _short(rule: Reference) -> str:
    return {"pair": "base"}.get(rule, rule)


def _width(grid: Grid) -> int:
    return len(_INDENT) + sum(_widths(grid)) + len(_GAP) * (len(grid[0]) - 1)


def _widths(grid: Grid) -> list[int]:
    return [max(columns(line[i]) for line in grid) for i in range(len(grid[0]))]


def _lines(grid: Grid) -> list[str]:
    """Format the grid in lines of at most `WIDTH` columns.

    Columns that do not fit go into a second table below.
    """
    return [line for part in _parts(grid) for line in _aligned(part)]


def _parts(grid: Grid) -> Iterator[Grid]:
    widths = _widths(grid)
    first, used = [0], len(_INDENT) + widths[0]
    for column in range(1, len(widths)):
        if len(first) > 1 and used + len(_GAP) + widths[column] > WIDTH:
            yield [[line[i] for i in first] for line in grid]
            first, used = [0], len(_INDENT) + widths[0]
        first.append(column)
        used += len(_GAP) + widths[column]
    yield [[line[i] for i in first] for line in grid]


def _aligned(grid: Grid) -> list[str]:
    widths = _widths(grid)
    lines = []
    for line in grid:
        name = line[0] + " " * (widths[0] - columns(line[0]))
        rest = [
            " " * (width - columns(text)) + text
            for text, width in zip(line[1:], widths[1:], strict=True)
        ]
        lines.append((_INDENT + _GAP.join([name, *rest])).rstrip())
    return lines
