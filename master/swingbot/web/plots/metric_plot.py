"""A metric over the commits of a tree: boots, noise bands, releases, swings and incidents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swingbot.core.text.plain import clean, cut

from . import svg
from .plot import PlotSubject, heading

_LEFT: Final = 74
_RIGHT: Final = 20
_TOP: Final = 84
_BOTTOM: Final = 48
_HEIGHT: Final = 350
_NARROWEST: Final = 556
_WIDEST: Final = 1130
_LETTER: Final = 6.6  # approximate width of a character of the small font, in pixels
_MOST_MARKS: Final = 3000  # with more boots, each commit is one mark


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseBand:
    """A level and what noise makes of it, from one commit to another (indices of columns)."""

    first: int
    last: int
    level: float
    low: float
    high: float
    rise: float = 0.0  # of the level along the columns, in a ramp or a creep


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMark:
    """A swing or incident at a commit: its id, its page, and what it says."""

    column: int
    id: str
    href: str
    words: str
    kind: str  # incident or swing


def metric_plot(
    shown: PlotSubject,
    columns: Sequence[Mapping[str, Any]],
    bands: Sequence[NoiseBand] = (),
    marks: Sequence[HistoryMark] = (),
) -> str:
    """A column per commit, oldest first: {commit, subject, release, variant, boots (of this
    testbox)}.

    A column without boots was measured on another testbox, so that plots of several align.
    """
    title = clean(f"{shown.metric} of {shown.unit_job} on {shown.testbox} over commits")
    values = [boot["mean"] for column in columns for boot in column["boots"]]
    if not values:
        words = "No commit that is shown has a value of this metric here."
        return svg.document(_NARROWEST, 80, title, [svg.text(24, 44, words, "soft")])
    width = max(_NARROWEST, min(_WIDEST, _LEFT + _RIGHT + 40 * len(columns)))
    x = svg.AxisScale(-0.7, len(columns) - 0.3, _LEFT, width - _RIGHT)
    inside = [end for band in bands for end in (band.low, band.high)]
    y = svg.scale_for([*values, *_near(values, inside)], _HEIGHT - _BOTTOM, _TOP)
    parts = [*heading(shown, 10, width - 10), *_value_axis(shown, y, width)]
    parts += [part for band in bands for part in _band(band, x, y)]
    parts += _releases(columns, x)
    whole = len(values) <= _MOST_MARKS
    for at, column in enumerate(columns):
        if column["boots"]:
            parts += _boots(column, x(at), y, whole=whole, room=x(1) - x(0))
    parts += [part for mark in _spread(marks) for part in _mark(mark, columns, x, y)]
    parts += _names(columns, x)
    words = "commits, oldest first (the value axis does not start at 0)"
    parts.append(svg.text((_LEFT + width - _RIGHT) / 2, _HEIGHT - 8, words, "soft small", "middle"))
    return svg.document(width, _HEIGHT, title, parts)


def _near(values: Sequence[float], ends: Sequence[float]) -> list[float]:
    """Return the ends of bands unless they would hide the points."""
    low, high = min(values), max(values)
    room = 2.0 * (high - low) or abs(high) * 0.1
    return [end for end in ends if low - room <= end <= high + room]


def _value_axis(shown: PlotSubject, y: svg.AxisScale, width: float) -> list[str]:
    bottom = float(_HEIGHT - _BOTTOM)
    marks = svg.ticks(y.low, y.high)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    parts = []
    for value in marks:
        parts += [
            svg.line(_LEFT, y(value), width - _RIGHT, y(value), "grid"),
            svg.text(_LEFT - 7, y(value) + 4, svg.tick_label(value, step), "soft small", "end"),
        ]
    words = f"{shown.unit or 'value'} ({shown.direction})"
    return [
        *parts,
        svg.text(16, (_TOP + bottom) / 2, cut(words, 44), "small", "middle", rotate=-90),
        svg.line(_LEFT, _TOP, _LEFT, bottom, "axis"),
        svg.line(_LEFT, bottom, width - _RIGHT, bottom, "axis"),
    ]


def _band(band: NoiseBand, x: svg.AxisScale, y: svg.AxisScale) -> list[str]:
    left, right, half = x(band.first - 0.5), x(band.last + 0.5), band.rise / 2.0

    def height(value: float) -> float:
        return y(min(max(value, y.low), y.high))

    tops = height(band.high - half), height(band.high + half)
    bottoms = (
        max(height(band.low - half), tops[0] + 1.0),
        max(height(band.low + half), tops[1] + 1.0),
    )
    corners = (left, tops[0]), (right, tops[1]), (right, bottoms[1]), (left, bottoms[0])
    begin, end = band.level - half, band.level + half
    level = f"level {begin:.6g} to {end:.6g}" if band.rise else f"level {band.level:.6g}"
    words = f"{level}; noise alone stays within {band.low - half:.6g} and {band.high - half:.6g}"
    if band.rise:
        words += f", at the end {band.low + half:.6g} and {band.high + half:.6g}"
    return [
        svg.element(
            "polygon",
            svg.element("title", words),
            points=" ".join(f"{at:g},{edge:g}" for at, edge in corners),
            class_="base band",
        ),
        svg.line(left, y(begin), right, y(end), "base level"),
    ]


def _releases(columns: Sequence[Mapping[str, Any]], x: svg.AxisScale) -> list[str]:
    """A line for each release, with its name where there is room."""
    parts, free = [], float(_LEFT)
    for at, column in enumerate(columns):
        if column["release"]:
            parts.append(svg.line(x(at), _TOP - 8.0, x(at), float(_HEIGHT - _BOTTOM), "axis"))
            name = cut(column["release"], 14)
            half = _LETTER * len(name) / 2
            if x(at) - half >= free:
                parts.append(svg.text(x(at), _TOP - 12, name, "small", "middle"))
                free = x(at) + half + 6
    return parts


def _boots(
    column: Mapping[str, Any], at: float, y: svg.AxisScale, *, whole: bool, room: float
) -> list[str]:
    boots = column["boots"]
    what = f"{column['commit'][:12]} {cut(column['subject'], 80)}"
    if not whole:
        mean = sum(boot["mean"] for boot in boots) / len(boots)
        words = f"{what}: mean {mean:.6g} of {len(boots)} boots"
        return [
            svg.link(
                f"/variant/{column['variant']}", words, svg.disc(at, y(mean), 3.0, "base boot")
            )
        ]
    step = min(3.0, 0.8 * room / len(boots))
    return [
        svg.link(
            f"/boot/{boot['boot']}",
            f"{what}, boot {boot['boot']}: mean {boot['mean']:.6g} of {boot['runs']}"
            f" run{'s' * (boot['runs'] != 1)}",
            svg.disc(at + (index - (len(boots) - 1) / 2) * step, y(boot["mean"]), 3.5, "base boot"),
        )
        for index, boot in enumerate(boots)
    ]


def _spread(marks: Sequence[HistoryMark]) -> list[HistoryMark]:
    """One mark per column and kind: an incident says more than the swing that led to it."""
    best: dict[int, HistoryMark] = {}
    for mark in marks:
        if mark.column not in best or mark.kind == "incident":
            best[mark.column] = mark
    return [best[column] for column in sorted(best)]


def _mark(
    mark: HistoryMark,
    columns: Sequence[Mapping[str, Any]],
    x: svg.AxisScale,
    y: svg.AxisScale,
) -> list[str]:
    boots = columns[mark.column]["boots"]
    top = min((y(boot["mean"]) for boot in boots), default=float(_TOP + 20))
    at, height = x(mark.column), max(float(_TOP + 8), top - 12)
    class_ = "head boot" if mark.kind == "incident" else "third boot"
    return [
        svg.link(
            mark.href,
            clean(mark.words),
            svg.diamond(at, height, 5.0, class_),
            svg.text(at, height - 8, mark.id, "small", "middle"),
        )
    ]


def _names(columns: Sequence[Mapping[str, Any]], x: svg.AxisScale) -> list[str]:
    """Abbreviated commits below the axis, as many as fit."""
    parts, free = [], float("-inf")
    for at, column in enumerate(columns):
        name = column["commit"][:7]
        half = _LETTER * len(name) / 2
        if x(at) - half < free:
            continue
        free = x(at) + half + 6
        label = svg.text(x(at), _HEIGHT - _BOTTOM + 16, name, "soft small", "middle")
        parts.append(svg.element("a", label, href=f"/variant/{column['variant']}", target="_top"))
    return parts
