"""Rows of a comparison as a table for a mail: parent, commit, boots, runs and the change."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.report.claim import claim_of
from swingbot.core.text.numbers import change_with_interval, count, levels, spreads
from swingbot.core.text.plain import WIDTH, columns, cut, wrap

_INDENT = "  "
_KEY = 32  # columns for the name of a testbox or metric; a longer name has a line of its own


def grid(
    keys: Sequence[str],
    rows: Sequence[ComparisonRow],
    sides: tuple[str, str] = ("parent", "commit"),
) -> list[str]:
    """Return a header line, and for each row its numbers and its change with the interval.

    The numbers are mean +- stddev of both sides, boots and runs. If they do not fit on one line,
    each side gets a line. Long `keys` are truncated, never wrapped.
    """
    cells = [_cells(row) for row in rows]
    heads = [f"{sides[0]} +- sd", f"{sides[1]} +- sd", "boots", "runs"]
    widths = [max(columns(text) for text in column) for column in zip(heads, *cells, strict=True)]
    numbers_width = sum(widths) + 2 * (len(widths) - 1)
    if len(_INDENT) + 4 + numbers_width > WIDTH:
        return [
            line
            for key, row in zip(keys, rows, strict=True)
            for line in (*wrap(cut(key, 100), "    ", _INDENT), *_below(row, sides))
        ]
    room = WIDTH - len(_INDENT) - numbers_width - 2
    names = [cut(key, 100) for key in keys]
    key_width = max(
        (columns(name) for name in names if columns(name) <= min(_KEY, room)), default=2
    )
    lines = [_INDENT + " " * key_width + "  " + _line(heads, widths)]
    for name, row, cell in zip(names, rows, cells, strict=True):
        if columns(name) > key_width:
            lines += wrap(name, "    ", _INDENT)
            name = ""
        lines.append(
            _INDENT + name + " " * (key_width - columns(name)) + "  " + _line(cell, widths)
        )
        lines += wrap(_change(row), "      ")
    return lines


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        " " * (width - columns(cell)) + cell for cell, width in zip(cells, widths, strict=True)
    )


def _cells(row: ComparisonRow) -> list[str]:
    (one, other), (sd, other_sd) = (
        levels(row.base.mean, row.head.mean),
        spreads(row.base.stddev, row.head.stddev),
    )
    boots, runs = f"{row.base.boots}+{row.head.boots}", f"{row.base.runs}+{row.head.runs}"
    return [f"{one.strip()} +- {sd.strip()}", f"{other.strip()} +- {other_sd.strip()}", boots, runs]


def _change(row: ComparisonRow) -> str:
    unit = f"in {cut(row.unit, 20)}: " if row.unit else ""
    spread = f"; {claim_of(row)}" if row.spread_changed else ""
    return unit + change_with_interval(row.change_pct, row.interval_pct, row.better) + spread


def _below(row: ComparisonRow, sides: tuple[str, str]) -> list[str]:
    """Print each side on a line of its own."""
    width = max(map(columns, sides))
    lines = []
    for word, mean, sd, side in zip(
        sides,
        levels(row.base.mean, row.head.mean),
        spreads(row.base.stddev, row.head.stddev),
        (row.base, row.head),
        strict=True,
    ):
        text = f"    {word:<{width}}  {mean} +- {sd}"
        lines += (
            [f"{text}   {_n(side)}"]
            if columns(f"{text}   {_n(side)}") <= WIDTH
            else [text, f"    {'':<{width}}  {_n(side)}"]
        )
    return [*lines, *wrap(_change(row), "    ")]


def _n(side: Side) -> str:
    return f"{count(side.boots, 'boot')}, {count(side.runs, 'run')}"
