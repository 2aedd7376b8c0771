"""The plot of a table, a row for each kernel: its runs on one axis, with its change's interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from swingbot.core.model.comparison_row import Bounds, ComparisonRow
from swingbot.core.table.verdict import in_words, on_page
from swingbot.core.text.plain import cut

from . import svg
from .drawing import Drawing, PlotSubject, linked

_PITCH: Final = 36.0  # height of a row: its name, its boots, the interval
_NAME: Final = 34  # characters of a kernel's name, which stands above its marks
_MARKS: Final = (18.0, 29.0)  # between which the boots of a row are
_INTERVAL: Final = 32.0
MOST_MARKS: Final = 500  # with more runs each boot is one mark, with more boots some are


@dataclass(frozen=True, slots=True, kw_only=True)
class BootValues:
    """One boot of a kernel: its id and the value of each run, in the metric's unit."""

    boot: str
    values: Sequence[float]

    @property
    def mean(self) -> float:
        return fmean(self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotRow:
    """A kernel's row; `href` is its page. `note` is shown instead of marks and says why there are
    none."""

    name: str
    href: str = ""
    boots: Sequence[BootValues] = ()
    change: ComparisonRow | None = None  # None: the kernel is a reference, or not judged yet
    note: str = ""


def table_plot(shown: PlotSubject, rows: Sequence[PlotRow], most: int = MOST_MARKS) -> Drawing:
    """Every run of every kernel on one axis, and what is claimed of it; at most about `most`
    marks.

    A disc is a run, a bar the mean of the boots. The line below them is the 95 % interval of the
    change, laid from the level of the reference; at the right is the change as in the table.
    """
    values = [value for row in rows for boot in row.boots for value in boot.values]
    title = f"{shown.metric} of {shown.unit_job} on {shown.testbox}: every run of each kernel"
    if not values:
        return Drawing(title=title, words="No run has reported this metric yet.")
    x = _scale(values, rows)
    boots = sum(len(row.boots) for row in rows)
    each = max(2, most // len(rows)) if boots > most else boots
    parts, whole = _axis(x, _PITCH * len(rows)), len(values) <= most
    for at, row in enumerate(rows):
        top = _PITCH * at
        parts.append(_name(row, top))
        if row.boots:
            parts += _boots(row, x, top, each, whole=whole)
        if row.change is not None:
            parts.append(_change(row, row.change, x, top))
    mark = "run" if whole else "boot (there are too many runs)"
    if each < boots:
        mark = f"boot, of each kernel at most {each} with the lowest and the highest"
    words = (
        f"In {shown.unit or 'the unit of the metric'}, {shown.direction}; the axis does not start"
        f" at 0. A disc is a {mark}; the bar is the mean of the boots, the line below it the 95 %"
        " interval of the change. < N %: no change of N % or more; (…): not clear; […]: smaller"
        " than what matters."
    )
    height = round(_PITCH * len(rows)) + 22
    return Drawing(title=title, words=words, field="\n".join(parts), height=height)


def _scale(values: Sequence[float], rows: Sequence[PlotRow]) -> svg.AxisScale:
    """A scale over all values, and over intervals unless they would hide the values."""
    low, high = min(values), max(values)
    room = high - low or abs(high) * 0.1
    ends = [end for row in rows for end in _bounds(row.change) or ()]
    near = [end for end in ends if low - room <= end <= high + room]
    return svg.scale_for([*values, *near], 0.0, 100.0)


def _bounds(row: ComparisonRow | None) -> Bounds | None:
    """The interval of a change around the level of its reference, in the metric's unit."""
    if row is None or row.base.mean is None or row.verdict == "invalid":
        return None
    level, bounds = row.base.mean, row.interval_pct
    if row.points is not None:
        bounds = row.points.interval
        return (level + bounds[0], level + bounds[1]) if bounds else None
    return (level * (1 + bounds[0] / 100), level * (1 + bounds[1] / 100)) if bounds else None


def _axis(x: svg.AxisScale, bottom: float) -> list[str]:
    marks = svg.ticks(x.low, x.high)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    parts = []
    for value in marks:
        at = f"{x(value):.2f}%"
        parts += [
            svg.line(at, 0.0, at, bottom, "grid"),
            svg.text(at, bottom + 15, svg.tick_label(value, step), "soft small", "middle"),
        ]
    return [*parts, svg.line("0%", bottom, "100%", bottom, "axis")]


def _name(row: PlotRow, top: float) -> str:
    """A kernel's name above its marks, with the reason if it has none."""
    words = row.name if row.boots else f"{row.name}: {row.note or 'no value yet'}"
    label = svg.text("0%", top + 12, cut(words, _NAME if row.boots else _NAME + 8), "small")
    rule = svg.line("0%", top, "100%", top, "grid")
    return linked(row.href, words, label) + rule


def _boots(row: PlotRow, x: svg.AxisScale, top: float, most: int, *, whole: bool) -> list[str]:
    """The boots of a kernel, each at its own height, and the mean of their means."""
    shown, (upper, lower) = _chosen(row.boots, most), _MARKS
    parts = []
    for at, boot in enumerate(shown):
        y = upper + (lower - upper) * (at + 0.5) / len(shown) + top
        runs = f"mean {boot.mean:.6g} of {len(boot.values)} run{'s' * (len(boot.values) != 1)}"
        words = f"{row.name}, boot {boot.boot}: {runs}"
        for value in boot.values if whole else (boot.mean,):
            said = f"{words}; this run {value:.6g}" if whole and len(boot.values) > 1 else words
            mark = svg.disc(f"{x(value):.2f}%", y, 3.0, None)
            parts.append(linked(f"/boot/{boot.boot}", said, mark))
    mean = fmean(boot.mean for boot in row.boots)
    middle = f"{x(mean):.2f}%"
    bar = svg.line(middle, top + upper - 2, middle, top + lower + 2, "head mean")
    words = f"{row.name}: mean {mean:.6g} of {len(row.boots)} boot{'s' * (len(row.boots) != 1)}"
    return [
        svg.element("g", *parts, class_="base boot run"),
        linked(row.href, words, bar),
    ]


def _chosen(boots: Sequence[BootValues], most: int) -> Sequence[BootValues]:
    """At most `most` boots, evenly by their means, with the lowest and the highest."""
    if len(boots) <= most:
        return boots
    ranked = sorted(boots, key=lambda boot: boot.mean)
    return [ranked[round(at * (len(ranked) - 1) / (most - 1))] for at in range(most)]


def _change(row: PlotRow, change: ComparisonRow, x: svg.AxisScale, top: float) -> str:
    """The change in figures, and its interval as a line; an end beyond the axis has no cap."""
    words = f"{row.name}: {in_words(change)}"
    if change.interval_pct:
        words += f", 95 % interval {change.interval_pct[0]:+.3g} to {change.interval_pct[1]:+.3g} %"
    figures = on_page(change)
    marks = [svg.text("100%", top + 12, figures, "said small", "end")]
    if bounds := _bounds(change):
        y = top + _INTERVAL
        ends = [f"{x(min(x.high, max(x.low, end))):.2f}%" for end in bounds]
        marks.append(svg.line(ends[0], y, ends[1], y, "bar"))
        inside = [f"{x(end):.2f}%" for end in bounds if x.low <= end <= x.high]
        marks += [svg.line(end, y - 3, end, y + 2, "bar") for end in inside]
    return svg.element("g", linked(row.href, words, *marks), class_=change.verdict)
