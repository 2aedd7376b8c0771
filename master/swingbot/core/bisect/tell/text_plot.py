"""The belief of a bisection as a picture of characters: a line a commit, as wide as the
terminal.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_TINY: Final = 0.002  # below, an unmeasured commit is shown together with its neighbours
_LEAST_WIDTH: Final = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotPoint:
    """A point of the range: 0 is the good end, the last the bad one."""

    idx: int
    commit: str
    subject: str
    probability: float | None  # None: point 0, or nothing is believed yet
    boots: int
    mean: float | None  # of boot means
    sd: float | None  # between boots
    mark: str = ""  # "skipped", "does not build", "culprit", ...
    hint: float = 1.0
    coming: bool = False  # a boot is asked for and has not come back


def picture(
    lines: Sequence[PlotPoint],
    *,
    width: int = 100,
    ascii: bool = False,
    p_none: float | None = None,
    everything: bool = False,
) -> str:
    """Plot the probability of each commit as a bar, with its boots and their mean.

    Consecutive unlikely commits share one line.
    """
    width = max(_LEAST_WIDTH, width)
    rows: list[tuple[str, float | None, str, str, str]] = []
    for group in _groups(lines, everything):
        rows.append(_row(group[0], ascii) if len(group) == 1 else _folded(group, ascii))
    names, shares, tails = (
        [row[0] for row in rows],
        [row[1] for row in rows],
        [row[2] for row in rows],
    )
    left, right = max(map(len, names), default=0), max(map(len, tails), default=0)
    subject = (
        0
        if width < 90
        else min(
            max((_wide(row[3]) + len(row[4]) + 4 for row in rows), default=0),
            (width - left - right - 12) // 2,
        )
    )
    bar = max(8, min(40, width - left - right - subject - 12))
    top = max((p for p in shares if p is not None), default=1.0) or 1.0
    text = []
    for name, p, tail, label, mark in rows:
        drawn = " " * (bar + 8) if p is None else f"{_bar(p / top, bar, ascii)} {_percent(p)}"
        line = (
            f"{name:{left}} {drawn} {tail:{right}}"
            + (f"  [{mark}]" if mark else "")
            + (f"  {label}" if subject else "")
        )
        text.append(_cut(line.rstrip(), width))
    if p_none is not None:
        text.append(
            _cut(
                (
                    f"{'none of them':{left}} {_bar(min(1.0, p_none / top), bar, ascii)}"
                    f" {_percent(p_none)}"
                ),
                width,
            )
        )
    return "\n".join(text)


def _groups(lines: Sequence[PlotPoint], everything: bool) -> list[list[PlotPoint]]:
    """Unmeasured and unsuspected neighbours go together, three or more of them."""
    groups: list[list[PlotPoint]] = []
    for line in lines:
        dull = not everything and _dull(line)
        if groups and dull and _dull(groups[-1][-1]):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [
        part
        for group in groups
        for part in ([group] if len(group) > 2 else [[line] for line in group])
    ]


def _dull(line: PlotPoint) -> bool:
    return (
        not (line.boots or line.mark or line.coming or line.hint != 1.0)
        and line.probability is not None
        and line.probability < _TINY
    )


def _row(line: PlotPoint, ascii: bool) -> tuple[str, float | None, str, str, str]:
    spread = ("+-" if ascii else "±") + _number(line.sd, 3) if line.sd is not None else ""
    boots = f"{line.boots} boot{'s' * (line.boots != 1)}" if line.boots else ""
    mean = f"{_number(line.mean, 5)} {spread}".strip() if line.mean is not None else ""
    parts = [
        line.mark,
        f"hint x{line.hint:g}" if line.hint != 1.0 else "",
        "boot under way" if line.coming else "",
    ]
    return (
        f"{line.idx:>4} {line.commit[:12]}",
        line.probability,
        f"{boots:>8} {mean}".rstrip(),
        line.subject,
        ", ".join(filter(None, parts)),
    )


def _folded(group: Sequence[PlotPoint], ascii: bool) -> tuple[str, float | None, str, str, str]:
    dots = "..." if ascii else "…"
    return (
        f"{dots:>4} {len(group)} commits",
        sum(line.probability or 0.0 for line in group),
        "",
        f"{group[0].idx}{dots}{group[-1].idx}",
        "",
    )


def _number(value: float, digits: int) -> str:
    """Format with `digits` significant digits, without an exponent up to 1e9."""
    return f"{value:.0f}" if 10.0**digits <= abs(value) < 1e9 else f"{value:.{digits}g}"


def _bar(share: float, width: int, ascii: bool) -> str:
    share = min(1.0, max(0.0, share))
    if ascii:
        return ("#" * round(share * width)).ljust(width, ".")
    full, rest = divmod(round(share * width * 8), 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def _percent(p: float) -> str:
    """Five characters and the sign; certainty is never rounded up to."""
    if 0.9995 <= p < 1:
        return ">99.9 %"
    return " <0.1 %" if 0 < p < 0.0005 else f"{100 * p:5.1f} %"


def _wide(text: str) -> int:
    return sum(_cells(c) for c in text)


def _cells(c: str) -> int:
    return 2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1


def _cut(text: str, width: int) -> str:
    """Padded or shortened to so many cells of a terminal; what cannot be printed becomes a
    space.
    """
    cells, kept = 0, []
    for c in text:
        c = c if c.isprintable() else " "
        if cells + _cells(c) > width:
            break
        cells += _cells(c)
        kept.append(c)
    return "".join(kept)
