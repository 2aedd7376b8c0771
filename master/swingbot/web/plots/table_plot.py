"""The plot of a table, one row per kernel: every run on one axis, with each change's interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Final

from swingbot.core.model.comparison_row import Bounds, ComparisonRow
from swingbot.core.table.verdict import brief, in_words
from swingbot.core.text.plain import clean, cut

from . import svg
from .plot import PlotSubject, heading

_WIDTH: Final = 556
_RIGHT: Final = 16
_TOP: Final = 58
_BOTTOM: Final = 74
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
    change: ComparisonRow | None = None  # None: the kernel is a reference, or not judged yet
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowPositions:
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

    def y(self, at: int) -> float:
        return _TOP + self.pitch * (at + 0.5)

    def frame(self, right: float) -> list[str]:
        """Stripes below every second row, and the names."""
        parts = []
        for at, row in enumerate(self.rows):
            y = self.y(at)
            if at % 2:
                size = {"width": right - 4.0, "height": self.pitch}
                parts.append(
                    svg.element("rect", x=4.0, y=y - self.pitch / 2, class_="stripe", **size)
                )
            label = svg.text(self.left - 8, y + 4, cut(row.name, _NAME), "small", "end")
            parts.append(svg.element("g", _title(row.name), label))
        return parts


def table_plot(shown: PlotSubject, rows: Sequence[PlotRow]) -> str:
    """Every run of every kernel on one axis, and what is claimed of it.

    A disc is a run, a bar the mean of the boots. The line below them is the 95 % interval of the
    change, laid from the level of the reference; at the right is the change as in the table.
    """
    values = [value for row in rows for boot in row.boots for value in boot.values]
    title = f"{shown.metric} of {shown.unit_job} on {shown.testbox}: every run of each kernel"
    if not values:
        words = "No run has reported this metric yet."
        return svg.document(_WIDTH, 80, clean(title), [svg.text(24, 44, words, "soft")])
    positions = _RowPositions(rows=rows)
    right = float(_WIDTH - _RIGHT - _SAID)
    x = _scale(values, rows, positions.left, right)
    whole = len(values) <= _MOST_MARKS
    mark = "run" if whole else "boot (there are too many runs)"
    words = f"{shown.unit or 'value'} ({shown.direction}; the axis does not start at 0)"
    legend = f"disc: a {mark}; bar: mean of the boots; line: 95 % interval of the change"
    notation = "< N %: no change of N % or more; (…): not clear; […]: smaller than what matters"
    parts = [*positions.frame(float(_WIDTH)), *heading(shown, 10, _WIDTH - 10)]
    parts += _axis(x, positions, right, [words, legend, notation])
    for at, row in enumerate(rows):
        if row.boots:
            parts += _boots(row, x, positions.y(at), positions.pitch, whole=whole)
        else:
            parts.append(_note(row.note or "no value yet", positions, at))
        if row.change is not None:
            parts.append(_change(row.name, row.change, x, positions.y(at), positions.pitch, right))
    return svg.document(_WIDTH, round(positions.bottom + _BOTTOM), clean(title), parts)


def _title(words: str) -> str:
    return svg.element("title", escape(clean(words)))


def _scale(
    values: Sequence[float], rows: Sequence[PlotRow], left: float, right: float
) -> svg.AxisScale:
    """A scale over all values, and over intervals unless they would hide the values."""
    low, high = min(values), max(values)
    room = high - low or abs(high) * 0.1
    ends = [end for row in rows for end in _bounds(row.change) or ()]
    near = [end for end in ends if low - room <= end <= high + room]
    return svg.scale_for([*values, *near], left, right)


def _bounds(row: ComparisonRow | None) -> Bounds | None:
    """The interval of a change around the level of its reference, in the metric's unit."""
    if row is None or row.base.mean is None or row.verdict == "invalid":
        return None
    level, bounds = row.base.mean, row.interval_pct
    if row.points is not None:
        bounds = row.points.interval
        return (level + bounds[0], level + bounds[1]) if bounds else None
    return (level * (1 + bounds[0] / 100), level * (1 + bounds[1] / 100)) if bounds else None


def _axis(
    x: svg.AxisScale, positions: _RowPositions, right: float, words: Sequence[str]
) -> list[str]:
    marks = svg.ticks(x.low, x.high)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    bottom, parts = positions.bottom, []
    for value in marks:
        label = svg.tick_label(value, step)
        parts += [
            svg.line(x(value), float(_TOP), x(value), bottom, "grid"),
            svg.text(x(value), bottom + 15, label, "soft small", "middle"),
        ]
    parts.append(svg.line(positions.left, bottom, right, bottom, "axis"))
    for at, text in enumerate(words):
        parts.append(svg.text(_WIDTH / 2, bottom + 32 + 15 * at, text, "soft small", "middle"))
    return parts


def _note(words: str, positions: _RowPositions, at: int) -> str:
    room = int((_WIDTH - _RIGHT - positions.left) / _LETTER) - 2
    label = svg.text(positions.left + 6, positions.y(at) + 4, cut(words, room), "soft small")
    return svg.element("g", _title(words), label)


def _boots(row: PlotRow, x: svg.AxisScale, y: float, pitch: float, *, whole: bool) -> list[str]:
    """The boots of a kernel, each at its own height, and the mean of their means."""
    means = [fmean(boot.values) for boot in row.boots]
    count = len(row.boots)
    parts = []
    for at, (boot, mean) in enumerate(zip(row.boots, means, strict=True)):
        height = y + (pitch - 9.0) * ((at + 0.5) / count - 0.5)
        runs = boot.values if whole else (mean,)
        words = (
            f"{row.name}, boot {boot.boot}: mean {mean:.6g} of {len(boot.values)} "
            f"run{'s' * (len(boot.values) != 1)}"
        )
        marks = [svg.disc(x(value), height, 2.6, "base run") for value in runs]
        parts.append(svg.link(f"/boot/{boot.boot}", clean(words), *marks))
    middle = x(fmean(means))
    return [*parts, svg.line(middle, y - pitch / 2 + 2, middle, y + pitch / 2 - 2, "head mean")]


def _change(
    name: str, row: ComparisonRow, x: svg.AxisScale, y: float, pitch: float, right: float
) -> str:
    """The change in figures, and its interval as a line; an end beyond the axis has no cap."""
    words = f"{name}: {in_words(row)}"
    if row.interval_pct:
        words += f", 95 % interval {row.interval_pct[0]:+.3g} to {row.interval_pct[1]:+.3g} %"
    figures = brief(row).replace("-", "\u2212")
    marks = [_title(words), svg.text(right + 8, y + 4, figures, "said small")]
    if bounds := _bounds(row):
        at = y + pitch / 2 - 2
        ends = [x(min(x.high, max(x.low, end))) for end in bounds]
        marks.append(svg.line(ends[0], at, ends[1], at, "bar"))
        inside = [x(end) for end in bounds if x.low <= end <= x.high]
        marks += [svg.line(end, at - 3, end, at + 2, "bar") for end in inside]
    return svg.element("g", *marks, class_=row.verdict)
