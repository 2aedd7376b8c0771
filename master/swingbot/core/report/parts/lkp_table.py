"""The table that LKP prints for the same numbers, for readers who are used to it.

Layout and arithmetic follow `lkp ncompare`: arithmetic mean and *population* standard deviation
over all runs, ignoring boots. The deviation is a percentage of the mean, truncated to an integer,
and is printed only above 2 %. No other table of swingbot hides a deviation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.text.plain import clean, columns, cut

_VALUE, _ERROR, _CHANGE = 10, 6, 10  # column widths of a mean, its deviation and a change
_RULE = 89
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LkpGroup:
    """Heading of one table: hash and subject of both commits, and the axes as (name, value).

    Axes are sorted when printed.
    """

    base: str
    base_subject: str = ""
    head: str
    head_subject: str = ""
    axes: tuple[tuple[str, str], ...]


def lkp_table(
    group: LkpGroup, rows: Iterable[ComparisonRow], width: int | None = None
) -> list[str]:
    """Return the lines of one table, rows sorted by name.

    Rows without values on both sides are left out; the table is empty if no row remains. With
    `width` (columns of a mail) the rule is shortened, axes are wrapped after a slash, subjects are
    truncated, and a long name goes on a line of its own.
    """
    known = [row for row in rows if row.base.values and row.head.values]
    cells = sorted(
        (clean(row.metric), lkp_cells(clean(row.metric), row.base.values, row.head.values))
        for row in known
    )
    return (
        [
            *_heading(group, width),
            *(line for name, cell in cells for line in _row(cell, cut(name, _LONGEST_NAME), width)),
        ]
        if cells
        else []
    )


def lkp_lines(values: Iterable[tuple[str, Sequence[float], Sequence[float]]]) -> list[str]:
    """Return lines without a heading, in the given order, of (name, base values, head values)."""
    return [
        f"{lkp_cells(clean(name), base, head)}  {cut(name, _LONGEST_NAME)}"
        for name, base, head in values
    ]


def lkp_cells(name: str, base: Sequence[float], head: Sequence[float]) -> str:
    """Return both means and the change between them, 45 columns for numbers of usual size.

    Raises ValueError if a side has no values.
    """
    if not base or not head:
        raise ValueError(f"{name}: LKP's table needs values on both sides")
    one, other = sum(base) / len(base), sum(head) / len(head)
    absolute = name.endswith("%") or name.startswith("perf-profile")
    change = other - one if absolute else 100 * (other - one) / (one or 1e-100)
    size = f"{change:+{_CHANGE}.1f}" if abs(change) < 100_000 else f"{change:+{_CHANGE}.2g}"
    return f"{_cell(one, base)}{size}{'  ' if absolute else '% '}{_cell(other, head)}"


def _cell(mean: float, values: Sequence[float]) -> str:
    if abs(mean) < 1000:
        text = f"{mean:{_VALUE}.2f}"
    else:
        text = f"{mean:{_VALUE}.4g}" if abs(mean) > 100_000_000 else f"{math.trunc(mean):{_VALUE}d}"
    if len(values) < 2:
        return text + " " * _ERROR
    deviation = math.sqrt(sum((value - mean) * (value - mean) for value in values) / len(values))
    relative = 100 * deviation / mean if mean else deviation
    if not 2 < relative < math.inf:
        return text + " " * _ERROR
    return (
        f"{text} ±{math.trunc(relative):{_ERROR - 3}d}%"
        if relative < 1e6
        else f"{text} ±{relative:.0e}%"
    )


def _heading(group: LkpGroup, width: int | None) -> list[str]:
    first, second = _VALUE + _ERROR, 1 + _CHANGE + _VALUE + _ERROR
    axes = sorted((clean(name), clean(value)) for name, value in group.axes)
    # A commit hash has one column per character.
    base, head = (
        clean(sha).encode("ascii", "replace").decode() for sha in (group.base, group.head)
    )
    commits = [
        f'{sha[:10]} ("{clean(subject)}")' if subject else sha
        for sha, subject in ((base, group.base_subject), (head, group.head_subject))
    ]
    lines = ["=" * min(_RULE, width or _RULE)]
    lines += _joined([name for name, _ in axes], "", ":", width) + _joined(
        [value for _, value in axes], "  ", "", width
    )
    lines += [
        "",
        "commit: ",
        *(f"  {cut(commit, width - 2) if width else commit}" for commit in commits),
        "",
    ]
    lines += [
        f"{base[:first]:>{first}} {head[:second]:>{second}} ",
        f"{'-' * first} {'-' * second} ",
    ]
    return [
        *lines,
        "         %stddev     %change         %stddev",
        "             \\          |                \\  ",
    ]


def _joined(parts: Sequence[str], indent: str, end: str, width: int | None) -> list[str]:
    """Join the parts with slashes; with `width`, wrap after a slash."""
    if width is None:
        return [f"{indent}{'/'.join(parts)}{end}"]
    lines, line = [], indent
    for n, part in enumerate(parts):
        piece = cut(part, width - len(indent) - 1) + ("/" if n < len(parts) - 1 else end)
        if line != indent and columns(line + piece) > width:
            lines.append(line)
            line = indent
        line += piece
    return [*lines, line]


def _row(cells: str, name: str, width: int | None) -> list[str]:
    line = f"{cells}  {name}"
    if width is None or columns(line) <= width:
        return [line]
    return [cells.rstrip(), f"      {cut(name, width - 6)}"]
