"""The tables of a sheet as plain text in 78 columns, fit for a commit message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.report.table.sheet import Block, Cell, Sheet, SheetKernel
from swingbot.core.table.references import in_words
from swingbot.core.table.verdict import brief
from swingbot.core.table.verdict import legend as notation
from swingbot.core.text.numbers import levels, percent, readings
from swingbot.core.text.plain import WIDTH, columns, cut, wrap

_INDENT: Final = "  "
_GAP: Final = "  "
_NAME: Final = 24  # columns for the name of a kernel
_MISSING: Final = "-"
_MOST_NAMED: Final = 4  # kernels that one note names
# the first part is in the cell already
_PLAIN: Final = re.compile(r"no change above [0-9.e-]+ (%|points)(, and no path [^;]+)?")

Grid = list[list[str]]  # cells by row, header first; a row of one cell is a subheading


def tables(sheet: Sheet, blocks: Sequence[Block]) -> list[str]:
    """Return one table per unit job and metric, whatever the number of testboxes."""
    lines: list[str] = []
    for own in _by_metric(blocks):
        lines += ["", *_head(own), *_lines(_across(sheet, own) or _down(sheet, own))]
        lines += _notes(sheet, own)
    for text in sheet.texts:
        lines += ["", *wrap(text.heading), *text.lines]
    return lines[1:]


def _by_metric(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Group the blocks of each unit job and metric."""
    groups: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        groups.setdefault((block.unit_job, block.metric), []).append(block)
    for own in groups.values():
        yield sorted(own, key=lambda block: block.testbox)


def _across(sheet: Sheet, blocks: Sequence[Block]) -> Grid | None:
    """Tabulate several testboxes side by side, a level and a change for each.

    None if that is too wide, or there is more to show than one change.
    """
    if len(blocks) == 1 or len(sheet.against) > 1 or _titles(sheet, blocks):
        return None
    texts = [[_level(*cell)[0] for cell in _cells(sheet, block)] for block in blocks]
    changes = [[brief(cell.rows.get(sheet.against[0])) for cell in b.cells] for b in blocks]
    pairs = [
        _side_by_side(*of_block) for of_block in zip(texts, changes, strict=True)
    ]  # one cell of level and change for each kernel
    grid = [["kernel", *(cut(block.testbox, 20) for block in blocks)]]
    for arm, kernel in enumerate(sheet.kernels):
        grid.append([cut(kernel.name, _NAME), *(cells[arm] for cells in pairs)])
    return grid if _width(grid) <= WIDTH else None


def _side_by_side(texts: Sequence[str], changes: Sequence[str]) -> list[str]:
    left, right = (max(map(columns, column)) for column in (texts, changes))
    return [
        f"{text:>{left}} {change:>{right}}" for text, change in zip(texts, changes, strict=True)
    ]


def _down(sheet: Sheet, blocks: Sequence[Block]) -> Grid:
    """Tabulate level, sd, change with its interval and columns, testbox below testbox.

    With several references each has a line of its own.
    """
    several = len(sheet.against) > 1
    titles = _titles(sheet, blocks)
    heads = ["kernel", blocks[0].unit or "level", "sd", "change", "95 % interval"]
    grid = [[*heads, *(["against"] if several else []), *titles]]
    for block in blocks:
        if len(blocks) > 1:
            grid.append([block.testbox])
        readings_of = [readings(*(cell.columns.get(title) for cell in block.cells))
                       for title in titles]  # fmt: skip
        for arm, (kernel, cell, mean) in enumerate(_cells(sheet, block)):
            beside = [texts[arm] or _MISSING for texts in readings_of]
            first = [cut(kernel.name, _NAME), *_level(kernel, cell, mean)]
            for rule in list(cell.rows) or [""]:
                against = [short(rule)] if several else []
                change = _change_and_interval(cell.rows.get(rule))
                grid.append([*first, *change, *against, *beside])
                first, beside = ["", "", ""], [""] * len(titles)
    return _without_empty(grid)


def _titles(sheet: Sheet, blocks: Sequence[Block]) -> list[str]:
    """Return the columns that have a number in some cell of these blocks."""
    cells = [cell for block in blocks for cell in block.cells]
    return [title for title in sheet.columns if any(title in cell.columns for cell in cells)]


def _cells(sheet: Sheet, block: Block) -> list[tuple[SheetKernel, Cell, str]]:
    """Each kernel with its cell and the text of its level."""
    means = levels(*(cell.side.mean if cell.side else None for cell in block.cells))
    return list(zip(sheet.kernels, block.cells, means, strict=True))


def _without_empty(grid: Grid) -> Grid:
    """Return the grid without columns that have nothing below their heading."""
    full = [
        at
        for at in range(len(grid[0]))
        if at == 0 or any(len(line) > 1 and line[at] for line in grid[1:])
    ]
    return [[line[at] for at in full] if len(line) > 1 else line for line in grid]


def _change_and_interval(row: ComparisonRow | None) -> list[str]:
    if row is None:
        return ["", ""]
    if row.interval_pct is None:
        return [brief(row), ""]
    low, high = row.interval_pct
    digits = 2 if high - low < 0.35 else 1  # a narrow interval is not printed as one number
    return [brief(row), f"{low:+.{digits}f} .. {high:+.{digits}f}"]


def _level(kernel: SheetKernel, cell: Cell, mean: str) -> list[str]:
    if kernel.trouble is not None:
        return ["not built", ""]
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
    return percent(100 * side.stddev / side.mean)


def _head(blocks: Sequence[Block]) -> list[str]:
    block = blocks[0]
    better = f"{block.better} is better" if block.better else ""
    unit = ", ".join(text for text in (block.unit, better) if text)
    where = ", ".join(cut(one.testbox, 63) for one in blocks)
    also = f" (also {', '.join(block.aliases)})" if block.aliases else ""
    text = f"{block.metric}{also}{f' [{unit}]' if unit else ''} of {block.unit_job} on {where}"
    return wrap(text, _INDENT, "")


def _notes(sheet: Sheet, blocks: Sequence[Block]) -> list[str]:
    """Return what does not fit a cell: why a row is unclear or invalid, and notes on changes.

    Kernels with the same note share it.
    """
    notes: dict[str, list[str]] = {}
    for block in blocks:
        where = f" on {cut(block.testbox, 40)}" if len(blocks) > 1 else ""
        for kernel, cell in zip(sheet.kernels, block.cells, strict=True):
            name = cut(kernel.name, _NAME) + where
            differ = len({(row.verdict, row.reason) for row in cell.rows.values()}) > 1
            for rule, row in cell.rows.items():
                if row.reason and kernel.trouble is None and not _PLAIN.fullmatch(row.reason):
                    against = f" against {short(rule)}" if differ else ""
                    notes.setdefault(f": {row.verdict}, {row.reason}", []).append(name + against)
                if used := _other_level(block, row):
                    reference = cut(sheet.kernels[row.reference].name, _NAME)
                    words = f": {reference} is {used} in this pair (outliers excluded)"
                    notes.setdefault(words, []).append(name)
    assumed = [
        line for block in blocks if block.note for line in wrap(block.note, _INDENT * 2, _INDENT)
    ]
    return assumed + [
        line
        for words, names in notes.items()
        for line in wrap(some_of(dict.fromkeys(names)) + words, _INDENT * 2, _INDENT)
    ]


def some_of(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    listed = list(names)
    more = len(listed) - _MOST_NAMED
    return ", ".join(listed[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _other_level(block: Block, row: ComparisonRow) -> str:
    """Return the level of the row's reference in this pair if its own row shows another one.

    Outlier boots are excluded per pair, so the level of a reference depends on the pair.
    """
    own = block.cells[row.reference].side
    if own is None or own.mean is None or row.base.mean is None:
        return ""
    shown, used = levels(own.mean, row.base.mean)
    return used.strip() if shown != used else ""


def legend(sheet: Sheet) -> list[str]:
    """Describe the rows: commit and subject of each kernel, and why a kernel is missing."""
    lines = []
    for kernel in sheet.kernels:
        text = f"{cut(kernel.name, 40)}  {kernel.commit[:12]} {cut(kernel.subject, 120)}"
        if kernel.incident is not None:
            text += f" (culprit of incident {kernel.incident})"
        if kernel.trouble is not None:
            text += f" -- not built: {kernel.trouble}"
        lines += wrap(text, _INDENT * 2, _INDENT)
    return lines


def places(sheet: Sheet, blocks: Sequence[Block]) -> list[str]:
    """Name the testboxes with what a reader must know of them, and the commands that ran."""
    labels = dict.fromkeys((block.testbox, block.label) for block in blocks)
    lines: list[str] = []
    for testbox, label in labels:
        if label:
            lines += wrap(f"{cut(testbox, 63)}: {cut(label, 100)}", _INDENT, "")
    for unit_job in dict.fromkeys(block.unit_job for block in blocks):
        if command := sheet.commands.get(unit_job):
            lines += wrap(f"{cut(unit_job, 120)} runs {cut(command, 400)}", _INDENT, "")
    return lines


def reading(sheet: Sheet, blocks: Sequence[Block]) -> list[str]:
    """Explain how to read these tables: references, intervals, and the notation they use."""
    rules = " and ".join(in_words(rule) for rule in sheet.against)
    rows = [row for block in blocks for row in block.rows]
    return wrap(
        f"Changes are relative to {rules}. The intervals of one metric hold jointly at 95 %. At"
        " most 0.5 % of tables claim a change in the wrong direction; there is no correction"
        f" across metrics. {'; '.join([*notation(rows), f'sd is between {_boots(blocks)}'])}."
    )


def _boots(blocks: Sequence[Block]) -> str:
    counts = {cell.side.boots for block in blocks for cell in block.cells if cell.side}
    least, most = min(counts, default=0), max(counts, default=0)
    return f"the {least if least == most else f'{least} to {most}'} boots of each kernel"


def short(rule: str) -> str:
    """Return the word for a reference in a table."""
    return {"pair": "base"}.get(rule, rule)


def _width(grid: Grid) -> int:
    return len(_INDENT) + sum(_widths(grid)) + len(_GAP) * (len(grid[0]) - 1)


def _widths(grid: Grid) -> list[int]:
    return [max(columns(line[at]) for line in grid if len(line) > 1) for at in range(len(grid[0]))]


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
            yield _only(grid, first)
            first, used = [0], len(_INDENT) + widths[0]
        first.append(column)
        used += len(_GAP) + widths[column]
    yield _only(grid, first)


def _only(grid: Grid, at: Sequence[int]) -> Grid:
    return [[line[i] for i in at] if len(line) > 1 else line for line in grid]


def _aligned(grid: Grid) -> list[str]:
    widths = _widths(grid)
    lines = []
    for line in grid:
        if len(line) == 1:
            lines.append(_INDENT + cut(line[0], 63))
            continue
        name = line[0] + " " * (widths[0] - columns(line[0]))
        rest = [
            " " * (width - columns(text)) + text
            for text, width in zip(line[1:], widths[1:], strict=True)
        ]
        lines.append((_INDENT + _GAP.join([name, *rest])).rstrip())
    return lines
