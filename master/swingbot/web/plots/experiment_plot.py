"""Plots of an experiment, one row per kernel: every run on one axis; each change around zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Final

from swingbot.core.model.comparison_row import Bounds, ComparisonRow
from swingbot.core.model.statuses import Reference
from swingbot.core.table.references import in_words
from swingbot.core.text.numbers import rounded_up
from swingbot.core.text.plain import clean, cut

from . import svg
from .plot import PlotSubject, heading

_WIDTH: Final = 556
_RIGHT: Final = 16
_TOP: Final = 58
_BOTTOM: Final = 44
_LETTER: Final = 7.0  # approximate width of a character of the small font, in pixels
_NAME: Final = 24  # characters of a kernel's name
_SAID: Final = 62  # width of a change in figures, in pixels
_MOST_MARKS: Final = 4000  # with more runs, each boot is one mark


@dataclass(frozen=True, slots=True, kw_only=True)
class BootValues:
    """One boot of a kernel: its id and the value of each run, in the metric's unit."""

    boot: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotRow:
    """A kernel's row. `note` is shown instead of marks and says why there are none."""

    name: str
    boots: Sequence[BootValues] = ()
    change: ComparisonRow | None = None  # None: the kernel is a reference
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Positions of rows and their names, in pixels."""

    rows: Sequence[PlotRow]

    @property
    def pitch(self) -> float:
        return 22.0 if len(self.rows) <= 30 else 17.0 if len(self.rows) <= 80 else 14.0

    @property
    def left(self) -> float:
        longest = max((len(cut(row.name, _NAME)) for row in self.rows), default=0)
        return 18.0 + _LETTER * max(6, longest)

    @property
    def bottom(self) -> float:
        return _TOP + self.pitch * len(self.rows)

    def y(self, place: int) -> float:
        return _TOP + self.pitch * (place + 0.5)

    def frame(self, right: float) -> list[str]:
        """Stripes below every second row, and the names."""
        parts = []
        for place, row in enumerate(self.rows):
            y = self.y(place)
            if place % 2:
                size = {"width": right - 4.0, "height": self.pitch}
                parts.append(
                    svg.element("rect", x=4.0, y=y - self.pitch / 2, class_="stripe", **size)
                )
            label = svg.text(self.left - 8, y + 4, cut(row.name, _NAME), "small", "end")
            title = _title(row.name)
            parts.append(svg.element("g", title, label))
        return parts


def values_plot(shown: PlotSubject, rows: Sequence[PlotRow]) -> str:
    """Every run of every kernel on one axis: a disc per run, a bar at the mean of the boots."""
    values = [value for row in rows for boot in row.boots for value in boot.values]
    title = f"{shown.metric} of {shown.unit_job} on {shown.testbox}: every run of each kernel"
    if not values:
        return _empty(title, "No run has reported this metric yet.")
    places = _Rows(rows=rows)
    right = float(_WIDTH - _RIGHT)
    x = svg.scale_for(values, places.left, right)
    whole = len(values) <= _MOST_MARKS
    better = f"{shown.better} is better; " if shown.better else ""
    words = f"{shown.unit or 'value'} ({better}the axis does not start at 0)"
    parts = [
        *places.frame(float(_WIDTH)),
        *heading(shown, 10, _WIDTH - 10),
        *_axis(x, places, right, words),
    ]
    for place, row in enumerate(rows):
        if row.boots:
            parts += _boots(row, x, places.y(place), places.pitch, whole=whole)
        else:
            parts.append(_note(row.note or "no value yet", places, place))
    if not whole:
        words = f"{len(values)} runs: each disc is the mean of a boot"
        parts.append(svg.text(right, 18, words, "soft small", "end"))
    return svg.document(_WIDTH, round(places.bottom + _BOTTOM), clean(title), parts)


def effects_plot(shown: PlotSubject, rows: Sequence[PlotRow], rule: Reference) -> str:
    """Each kernel's change against its reference, with its simultaneous 95 % interval.

    A line marks zero, a band the smallest change that matters.
    """
    title = (
        f"{shown.metric} of {shown.unit_job} on {shown.testbox}: change against {in_words(rule)}"
    )
    compared = [row.change for row in rows if row.change is not None]
    changes = [value for row in compared if (value := _change(row)) is not None]
    if not changes:
        return _empty(title, "No change could be computed for this metric.")
    places = _Rows(rows=rows)
    right = float(_WIDTH - _RIGHT - _SAID)
    matters = next((row.min_effect_pct for row in compared if row.min_effect_pct), None)
    x = _around_zero(
        changes, [b for row in compared if (b := _bounds(row))], matters, places, right
    )
    unit = "points" if any(row.points for row in compared) else "%"
    words = f"change against {in_words(rule)}, {unit} ({shown.direction})"
    parts = [
        *places.frame(float(_WIDTH)),
        *heading(shown, 10, _WIDTH - 10),
        *_band(matters, unit, x, places),
    ]
    parts += _axis(x, places, right, words)
    parts.append(svg.line(x(0.0), float(_TOP), x(0.0), places.bottom, "axis"))
    for place, row in enumerate(rows):
        parts += _effect(row, place, x, places, right, unit)
    return svg.document(_WIDTH, round(places.bottom + _BOTTOM), clean(title), parts)


def _title(words: str) -> str:
    return svg.element("title", escape(clean(words)))


def _empty(title: str, words: str) -> str:
    return svg.document(_WIDTH, 80, clean(title), [svg.text(24, 44, words, "soft")])


def _axis(x: svg.AxisScale, places: _Rows, right: float, words: str) -> list[str]:
    marks = svg.ticks(x.low, x.high)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    parts = []
    for value in marks:
        parts += [
            svg.line(x(value), float(_TOP), x(value), places.bottom, "grid"),
            svg.text(
                x(value), places.bottom + 15, svg.tick_label(value, step), "soft small", "middle"
            ),
        ]
    parts.append(svg.line(places.left, places.bottom, right, places.bottom, "axis"))
    middle = (places.left + right) / 2
    return [*parts, svg.text(middle, places.bottom + 34, words, "soft small", "middle")]


def _note(words: str, places: _Rows, place: int) -> str:
    room = int((_WIDTH - _RIGHT - places.left) / _LETTER) - 2
    label = svg.text(places.left + 6, places.y(place) + 4, cut(words, room), "soft small")
    return svg.element("g", _title(words), label)


def _boots(row: PlotRow, x: svg.AxisScale, y: float, pitch: float, *, whole: bool) -> list[str]:
    """The boots of a kernel, each at its own height, and the mean of their means."""
    means = [fmean(boot.values) for boot in row.boots]
    count = len(row.boots)
    parts = []
    for place, (boot, mean) in enumerate(zip(row.boots, means, strict=True)):
        at = y + (pitch - 9.0) * ((place + 0.5) / count - 0.5)
        runs = boot.values if whole else (mean,)
        words = (
            f"{row.name}, boot {boot.boot}: mean {mean:.6g} of {len(boot.values)} "
            f"run{'s' * (len(boot.values) != 1)}"
        )
        marks = [svg.disc(x(value), at, 2.6, "base run") for value in runs]
        parts.append(svg.link(f"/boot/{boot.boot}", clean(words), *marks))
    middle = x(fmean(means))
    return [*parts, svg.line(middle, y - pitch / 2 + 2, middle, y + pitch / 2 - 2, "head mean")]


def _change(row: ComparisonRow) -> float | None:
    return row.points.change if row.points is not None else row.change_pct


def _bounds(row: ComparisonRow) -> Bounds | None:
    return row.points.interval if row.points is not None else row.interval_pct


def _around_zero(
    changes: Sequence[float],
    bounds: Sequence[Bounds],
    matters: float | None,
    places: _Rows,
    right: float,
) -> svg.AxisScale:
    """Scale over zero, all changes, the smallest that matters, and intervals if not too wide."""
    low, high = min(0.0, *changes, -(matters or 0.0)), max(0.0, *changes, matters or 0.0)
    room = 1.5 * (high - low) or 1.0
    low = max(low - room, min([low, *(bound[0] for bound in bounds)]))
    high = min(high + room, max([high, *(bound[1] for bound in bounds)]))
    margin = 0.04 * (high - low) or 1.0
    return svg.AxisScale(low - margin, high + margin, places.left, right)


def _band(matters: float | None, unit: str, x: svg.AxisScale, places: _Rows) -> list[str]:
    if not matters:
        return []
    low, high = x(max(x.low, -matters)), x(min(x.high, matters))
    title = svg.element("title", f"below {matters:g} {unit}: too small to matter")
    return [
        svg.element(
            "rect",
            title,
            x=low,
            y=float(_TOP),
            width=high - low,
            height=places.bottom - _TOP,
            class_="mark",
        )
    ]


def _effect(
    row: PlotRow, place: int, x: svg.AxisScale, places: _Rows, right: float, unit: str
) -> list[str]:
    y, change = places.y(place), row.change
    if change is None:
        if row.note:
            return [_note(row.note, places, place)]
        title = _title(f"{row.name}: a reference")
        figures = svg.text(right + 8, y + 4, "reference", "soft small")
        return [svg.element("g", title, svg.diamond(x(0.0), y, 5.0, "dot open")), figures]
    value, bounds = _change(change), _bounds(change)
    if value is None or change.verdict == "invalid":
        return [_note(row.note or f"{change.verdict}: {change.reason or ''}", places, place)]
    words = f"{row.name}: {value:+.3g} {unit}, {change.verdict}"
    if bounds:
        words += f", 95 % interval {bounds[0]:+.3g} to {bounds[1]:+.3g}"
    marks = [_title(words), *(_interval(bounds, x, y) if bounds else [])]
    marks.append(svg.disc(_within(value, x), y, 3.8, f"dot{'' if change.changed else ' open'}"))
    text = f"{value:+.1f} {unit}" if unit == "%" else f"{value:+.2g}"
    figures = text.replace("-", "\u2212") if change.changed else f"({text})".replace("-", "\u2212")
    if change.verdict == "same":
        figures = f"= {rounded_up(change.margin_pct):g} %" if change.margin_pct is not None else "="
    marks.append(svg.text(right + 8, y + 4, figures, "said small"))
    return [svg.element("g", *marks, class_=change.verdict)]


def _within(value: float, x: svg.AxisScale) -> float:
    return x(min(x.high, max(x.low, value)))


def _interval(bounds: Bounds, x: svg.AxisScale, y: float) -> list[str]:
    """A line with caps; an end beyond the axis has none."""
    low, high = bounds
    parts = [svg.line(_within(low, x), y, _within(high, x), y, "bar")]
    for end in bounds:
        if x.low <= end <= x.high:
            parts.append(svg.line(x(end), y - 4, x(end), y + 4, "bar"))
    return parts
