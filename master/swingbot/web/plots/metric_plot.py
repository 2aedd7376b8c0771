"""A metric over the commits of a tree: boots, noise bands, releases, swings, incidents, mails.

In a page the plot takes the width that there is: horizontal places are shares of it, heights and
letters are pixels.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Final

from swingbot.core.text.plain import clean, cut

from . import svg
from .plot import PlotSubject, heading

_LEFT: Final = 74  # width of the value axis, in pixels
_RIGHT: Final = 20
_HEAD: Final = 56  # height of the heading of a picture
_TOP: Final = 54  # where values begin; above are releases, incidents and swings
_BOTTOM: Final = 306
_HEIGHT: Final = 330
_WIDTH: Final = 1130  # of a picture
_LETTER: Final = 6.6  # approximate width of a character of the small font, in pixels
MOST_MARKS: Final = 500  # boots that are drawn
# Pixels of the field of values, beginning with a telephone's, and the class of labels that only
# wider ones have room for (static/plot.css).
_FIELDS: Final = ((255.0, ""), (940.0, " w2"), (1500.0, " w3"))
_GAP: Final = 0.2  # the narrowest bar of commits without a boot, in per cent of the width
_LOOKS: Final = ("base", "head", "green", "third", "amber", "sky")
MOST_SERIES: Final = len(_LOOKS)
_EMPTY: Final = "No commit that is shown has a value of this metric here."


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
    """A swing, incident or mail at a commit: its id, its page, and what it says."""

    column: int
    id: str
    href: str
    words: str
    kind: str  # incident, swing or mail
    of: str = ""  # the incident of a mail


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPeriod:
    """A time in which the testbox was out of service, in seconds since 1970."""

    begin: float
    end: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySeries:
    """Boots by column, each {boot, mean, runs, time (seconds since 1970)}; a mean is drawn `scale`
    times as high."""

    name: str
    boots: Sequence[Sequence[Mapping[str, Any]]]
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is drawn. A column is a commit, oldest first: {commit, subject, author, release,
    variant}. With `by_time` each boot is drawn at its time, else at its commit."""

    subject: PlotSubject
    columns: Sequence[Mapping[str, Any]]
    series: Sequence[HistorySeries]
    bands: Sequence[NoiseBand] = ()
    marks: Sequence[HistoryMark] = ()
    periods: Sequence[HistoryPeriod] = ()
    percent_of: str = ""  # values are in per cent of this commit
    by_time: bool = False
    most: int = MOST_MARKS  # boots that are drawn


@dataclass(frozen=True, slots=True)
class DrawnBoot:
    """A boot of a series at a column."""

    column: int
    boot: Mapping[str, Any]


def chosen_boots(series: HistorySeries, most: int) -> tuple[list[DrawnBoot], int]:
    """The boots to draw, and of how many commits each the lowest and the highest is one (0: all
    boots are drawn). No spike is lost."""
    total = sum(map(len, series.boots))
    if total <= most:
        return [DrawnBoot(at, one) for at, of in enumerate(series.boots) for one in of], 0
    size = -(-len(series.boots) // max(1, most // 2))
    drawn = []
    for first in range(0, len(series.boots), size):
        piece = range(first, min(first + size, len(series.boots)))
        found = [(one["mean"], at, n) for at in piece for n, one in enumerate(series.boots[at])]
        if found:
            for _, at, n in sorted({min(found), max(found)}, key=lambda one: one[1:]):
                drawn.append(DrawnBoot(at, series.boots[at][n]))
    return drawn, size


class _Drawing:
    """Scales of a history, and its parts as SVG with shares of the width."""

    def __init__(self, history: History) -> None:
        self.history = history
        most = history.most // max(1, len(history.series))
        self.chosen = [chosen_boots(one, most) for one in history.series]
        values = [
            drawn.boot["mean"] * series.scale
            for series, (boots, _) in zip(history.series, self.chosen, strict=True)
            for drawn in boots
        ]
        self.empty = not values
        inside = [end for band in history.bands for end in (band.low, band.high)]
        self.y = svg.scale_for([*values, *_near(values, inside)] or [0.0, 1.0], _BOTTOM, _TOP + 8.0)
        self.x = svg.AxisScale(*self._ends(), 0.0, 100.0)

    def _ends(self) -> tuple[float, float]:
        if not self.history.by_time:
            return -0.7, len(self.history.columns) - 0.3
        times = [boot["time"] for one in self.history.series for of in one.boots for boot in of]
        low, high = min(times, default=0.0), max(times, default=1.0)
        margin = 0.02 * (high - low) or 3600.0
        return low - margin, high + margin

    @cached_property
    def spans(self) -> dict[int, tuple[float, float]]:
        """From where to where a column lies; without boots it has no time."""
        if not self.history.by_time:
            return {at: (at - 0.5, at + 0.5) for at in range(len(self.history.columns))}
        spans: dict[int, tuple[float, float]] = {}
        for series in self.history.series[:1]:
            for at, boots in enumerate(series.boots):
                if times := [boot["time"] for boot in boots]:
                    spans[at] = min(times), max(times)
        return spans

    def share(self, x: float) -> str:
        return f"{self.x(x):.2f}%"

    def middle(self, column: int) -> float | None:
        span = self.spans.get(column)
        return None if span is None else (span[0] + span[1]) / 2

    def field(self) -> str:
        """Everything that lies to the right of the value axis."""
        return "\n".join(  # a line each: a text browser shows the words alone
            [
                *(svg.line("0%", self.y(v), "100%", self.y(v), "grid") for v in self._ticks()),
                *self._periods(),
                *self._bands(),
                *self._releases(),
                *self._gaps(),
                *(part for at in range(len(self.chosen)) for part in self._boots(at)),
                *self._marks(),
                svg.line("0%", _BOTTOM, "100%", _BOTTOM, "axis"),
                *self._names(),
            ]
        )

    def _ticks(self) -> list[float]:
        return svg.ticks(self.y.low, self.y.high)

    def axis(self) -> str:
        """The value axis, `_LEFT` pixels wide."""
        marks = self._ticks()
        step = marks[1] - marks[0] if len(marks) > 1 else 1.0
        shown = self.history.subject
        unit = f"% of {self.history.percent_of[:12]}" if self.history.percent_of else shown.unit
        words = cut(f"{unit or 'value'} ({shown.direction})", 40)
        return "\n".join(
            [
                *(
                    svg.text(
                        _LEFT - 7.0, self.y(v) + 4, svg.tick_label(v, step), "soft small", "end"
                    )
                    for v in marks
                ),
                svg.text(14.0, (_TOP + _BOTTOM) / 2, words, "small", "middle", rotate=-90),
                svg.line(_LEFT, _TOP, _LEFT, _BOTTOM, "axis"),
            ]
        )

    def _periods(self) -> list[str]:
        parts = []
        for one in self.history.periods:
            begin, end = one.begin, one.end
            if not self.history.by_time:
                begin, end = self._place_of(one.begin), self._place_of(one.end)
            if end < self.x.low or begin > self.x.high:
                continue
            left, right = (min(100.0, max(0.0, self.x(at))) for at in (begin, end))
            width = f"{max(0.3, right - left):.2f}%"
            parts.append(
                _titled(
                    one.words,
                    svg.element(
                        "rect", x=f"{left:.2f}%", y=_TOP, width=width, height=_BOTTOM - _TOP,
                        class_="away",
                    ),
                )
            )  # fmt: skip
        return parts

    def _place_of(self, time: float) -> float:
        """Behind as many of the measured commits as were first booted before that time, outside of
        the field if none was."""
        measured, times = self._measured
        before = bisect_left(times, time)
        return measured[before - 1] + 0.5 if before else -1.0

    @cached_property
    def _measured(self) -> tuple[list[int], list[float]]:
        """The measured commits; and, in order, the times at which one of them was first booted."""
        first = {
            at: min(one["time"] for one in of)
            for at, of in enumerate(self.history.series[0].boots)
            if of
        }
        return list(first), sorted(first.values())

    def _bands(self) -> list[str]:
        """In a box whose width is 1000, whatever that is in pixels."""
        parts = []
        for band in self.history.bands:
            spans = [self.spans[at] for at in range(band.first, band.last + 1) if at in self.spans]
            if spans:
                begin, end = min(one[0] for one in spans), max(one[1] for one in spans)
                parts += self._band(band, 10 * self.x(begin), 10 * self.x(end))
        frame = {"viewBox": f"0 0 1000 {_HEIGHT}", "preserveAspectRatio": "none"}
        return [svg.element("svg", *parts, width="100%", height=_HEIGHT, **frame)] if parts else []

    def _band(self, band: NoiseBand, left: float, right: float) -> list[str]:
        half = band.rise / 2.0
        right = max(right, left + 2.0)

        def height(value: float) -> float:
            return self.y(min(max(value, self.y.low), self.y.high))

        tops = height(band.high - half), height(band.high + half)
        bottoms = (
            max(height(band.low - half), tops[0] + 1.0),
            max(height(band.low + half), tops[1] + 1.0),
        )
        corners = (left, tops[0]), (right, tops[1]), (right, bottoms[1]), (left, bottoms[0])
        begin, end = band.level - half, band.level + half
        level = f"level {begin:.6g} to {end:.6g}" if band.rise else f"level {band.level:.6g}"
        words = (
            f"{level}; noise alone keeps a boot within {band.low - half:.6g} and"
            f" {band.high - half:.6g}"
        )
        if band.rise:
            words += f", at the end {band.low + half:.6g} and {band.high + half:.6g}"
        points = " ".join(f"{at:g},{edge:.1f}" for at, edge in corners)
        return [
            svg.element("polygon", _title(words), points=points, class_="base band"),
            svg.line(left, height(begin), right, height(end), "base level"),
        ]

    def _releases(self) -> list[str]:
        found = [
            (middle, column["release"])
            for at, column in enumerate(self.history.columns)
            if column["release"] and (middle := self.middle(at)) is not None
        ]
        names = [cut(name, 14) for _, name in found]
        fitting = _fitting([(self.x(x), name) for (x, _), name in zip(found, names, strict=True)])
        parts = [svg.line(self.share(x), 16, self.share(x), _BOTTOM, "axis") for x, _ in found]
        return parts + [
            svg.text(self.share(found[at][0]), 11, names[at], f"small{class_}", "middle")
            for at, class_ in fitting.items()
        ]

    def _gaps(self) -> list[str]:
        """Commits without a boot here, as bars along the axis, but for those too narrow."""
        if self.history.by_time or not self.history.series:
            return []
        parts, columns, at = [], self.history.columns, 0
        boots = self.history.series[0].boots
        while at < len(columns):
            end = at
            while end < len(columns) and not boots[end]:
                end += 1
            if end - at >= self._least_gap():
                number = f"{end - at} commits have" if end - at > 1 else "1 commit has"
                words = f"{number} no boot here: {columns[at]['commit'][:12]}"
                if end - at > 1:
                    words += f" to {columns[end - 1]['commit'][:12]}"
                width = f"{self.x(end - 0.5) - self.x(at - 0.5):.2f}%"
                place = {"x": self.share(at - 0.5), "y": _BOTTOM - 5, "width": width, "height": 5}
                parts.append(_titled(words, svg.element("rect", class_="gap", **place)))
            at = end + 1
        return parts

    def _least_gap(self) -> int:
        """Commits of the narrowest bar that is drawn."""
        return math.ceil(_GAP * len(self.history.columns) / 100)

    def _boots(self, number: int) -> list[str]:
        series, (chosen, size) = self.history.series[number], self.chosen[number]
        room, radius = self.x(1) - self.x(0), 3.5 if len(chosen) < 200 else 2.5
        parts, before, index = [], -1, 0
        for drawn in chosen:
            column, boot = self.history.columns[drawn.column], drawn.boot
            index = index + 1 if drawn.column == before else 0
            before, count = drawn.column, len(series.boots[drawn.column])
            at = self.x(boot["time"] if self.history.by_time else drawn.column)
            if not self.history.by_time and not size:
                at += (index - (count - 1) / 2) * min(0.3, 0.8 * room / count)
            words = (
                f"{column['commit'][:12]} {cut(column['subject'], 60)}"
                f" ({cut(column['author'].partition('<')[0].strip(), 24) or 'author not known'}),"
                f" boot {boot['boot']}{f' on {series.name}' if number else ''}: mean"
                f" {boot['mean']:.6g} of {boot['runs']} run{'s' * (boot['runs'] != 1)}"
            )
            if series.scale != 1.0:
                words += f", {boot['mean'] * series.scale:.5g} %"
            if count > 1:
                level = sum(one["mean"] for one in series.boots[drawn.column]) / count
                words += f"; level {level:.6g} of {count} boots"
            mark = _shape(number, f"{at:.2f}%", self.y(boot["mean"] * series.scale), radius)
            parts.append(_linked(f"/boot/{boot['boot']}", words, mark))
        return [svg.element("g", *parts, class_=f"{_LOOKS[number]} boot")]

    def _marks(self) -> list[str]:
        """Incidents with their mails in a line above swings, each with a guide to its commit."""
        mails = {one.of: one for one in self.history.marks if one.kind == "mail"}
        return [
            *self._line_of_marks("swing", 44.0, "third", {}),
            *self._line_of_marks("incident", 27.0, "head", mails),
        ]

    def _line_of_marks(
        self, kind: str, y: float, look: str, mails: Mapping[str, HistoryMark]
    ) -> list[str]:
        found = [
            (self.x(middle), mark)
            for mark in sorted(self.history.marks, key=lambda one: one.column)
            if mark.kind == kind and (middle := self.middle(mark.column)) is not None
        ]
        said = [
            (share, f"  {mark.id} {mails[mark.id].id if mark.id in mails else ''}")
            for share, mark in found
        ]
        fitting, parts = _fitting(said), []
        for at, (share, mark) in enumerate(found):
            x, side = f"{share:.2f}%", -1 if share > 90 else 1
            parts.append(svg.line(x, y, x, _BOTTOM, "guide"))
            small, anchor = f"small{fitting.get(at, ' w4')}", "end" if side < 0 else "start"
            diamond = svg.element("g", _shape(3, x, y, 5.0), class_=f"{look} boot")
            label = svg.text(x, y + 4, mark.id, small, anchor, dx=side * 8.0)
            parts.append(_linked(mark.href, mark.words, diamond, label))
            if mail := mails.get(mark.id):
                further = side * (8.0 + _LETTER * (len(mark.id) + 1))
                label = svg.text(x, y + 4, mail.id, "small", anchor, dx=further)
                parts.append(_linked(mail.href, mail.words, label, class_=small[6:] or None))
        return parts

    def _names(self) -> list[str]:
        """Abbreviated commits below the axis, as many as fit."""
        found = [
            (self.x(middle), column)
            for at, column in enumerate(self.history.columns)
            if (middle := self.middle(at)) is not None
        ]
        fitting = _fitting([(share, column["commit"][:7]) for share, column in found])
        parts = []
        for at, class_ in fitting.items():
            share, column = found[at]
            x = f"{share:.2f}%"
            label = svg.text(x, _BOTTOM + 16, column["commit"][:7], "soft small", "middle")
            parts.append(
                svg.element(
                    "a", label, href=f"/variant/{column['variant']}", class_=class_.strip() or None
                )
            )
        return parts

    def words(self) -> str:
        """What is drawn, in a sentence."""
        what = "each at its time" if self.history.by_time else "commits, oldest first"
        size = max((size for _, size in self.chosen), default=0)
        marks = "A mark is the mean of a boot"
        if size:
            total = sum(len(of) for one in self.history.series for of in one.boots)
            marks += (
                f"; of {total} boots the lowest and the highest of each"
                f" {size} commits {'are' if size > 1 else 'is'} drawn, so that no spike is lost"
                if size > 1
                else f"; of {total} boots the lowest and the highest of each commit are drawn"
            )
        if not self.history.by_time and (least := self._least_gap()) > 1:
            marks += f"; bars of fewer than {least} commits without a boot are left out"
        return f"{marks}; {what}; the value axis does not start at 0."


def _title(words: str) -> str:
    return f"<title>{escape(clean(words))}</title>"


def _linked(href: str, words: str, *parts: str, class_: str | None = None) -> str:
    return svg.element("a", _title(words), *parts, href=href, class_=class_)


def _titled(words: str, *parts: str) -> str:
    return svg.element("g", _title(words), *parts)


def _shape(number: int, x: str, y: float, r: float) -> str:
    """A mark; series differ in shape too."""
    if number == 0:
        return svg.disc(x, round(y, 1), r, None)
    paths = (
        "M-{r} -{r}H{r}V{r}H-{r}Z",
        "M0 -{r}L{r} {r}H-{r}Z",
        "M0 -{r}L{r} 0L0 {r}L-{r} 0Z",
        "M0 {r}L{r} -{r}H-{r}Z",
        "M-{r} 0L0 -{r}L{r} 0L{r} {r}H-{r}Z",
    )
    return svg.element("svg", svg.element("path", d=paths[number - 1].format(r=f"{r:g}")), x=x, y=y)


def _near(values: Sequence[float], ends: Sequence[float]) -> list[float]:
    """Return the ends of bands unless they would hide the points."""
    if not values:
        return []
    low, high = min(values), max(values)
    room = 2.0 * (high - low) or abs(high) * 0.1
    return [end for end in ends if low - room <= end <= high + room]


def _fitting(labels: Sequence[tuple[float, str]]) -> dict[int, str]:
    """Indices of the labels (share of the width, words) that have room, with their class: in a
    narrow field, and between those in wider ones."""
    kept: dict[int, str] = {}
    for width, class_ in _FIELDS:
        taken = sorted((labels[at][0], at) for at in kept)
        free, following = float("-inf"), 0
        for at, (share, words) in enumerate(labels):
            half = _LETTER * len(words) / 2 + 3
            middle = share * width / 100
            if at in kept:
                free, following = middle + half, following + 1
                continue
            if middle - half < free:
                continue
            if following < len(taken):
                other, index = taken[following]
                if middle + half > other * width / 100 - _LETTER * len(labels[index][1]) / 2 - 3:
                    continue
            kept[at] = class_
            free = middle + half
    return kept


def inline(history: History) -> tuple[str, str]:
    """The plot as HTML, as wide as what is around it, and what is drawn in a sentence."""
    drawing = _Drawing(history)
    if drawing.empty:
        return "", _EMPTY
    title = escape(clean(_name(history)))
    axis = f'<svg class="plot" width="{_LEFT}" height="{_HEIGHT}" aria-hidden="true">'
    field = f'<svg class="plot field" width="100%" height="{_HEIGHT}" role="group"'
    return (
        f'<div class="drawn">{axis}{drawing.axis()}</svg>'
        f'{field} aria-label="{title}">{drawing.field()}</svg></div>',
        drawing.words(),
    )


def legend(names: Sequence[str]) -> list[tuple[str, str]]:
    """The mark of each series as SVG, and its name."""
    return [
        (
            f'<svg class="plot" viewBox="-6 -6 12 12" aria-hidden="true">'
            f'<g class="{_LOOKS[at]} boot">{_shape(at, "0", 0.0, 4.0)}</g></svg>',
            name,
        )
        for at, name in enumerate(names)
    ]


def _name(history: History) -> str:
    shown = history.subject
    return f"{shown.metric} of {shown.unit_job} on {shown.testbox} over commits"


def metric_plot(history: History) -> str:
    """The plot as a picture."""
    drawing, title = _Drawing(history), clean(_name(history))
    if drawing.empty:
        return svg.document(556, 80, title, [svg.text(24, 44, _EMPTY, "soft")])
    width = _WIDTH - _LEFT - _RIGHT
    field = svg.element("svg", drawing.field(), x=_LEFT, y=_HEAD, width=width, height=_HEIGHT)
    axis = svg.element("svg", drawing.axis(), y=_HEAD, width=_LEFT, height=_HEIGHT)
    foot = svg.text(_WIDTH / 2, _HEAD + _HEIGHT + 12, drawing.words(), "soft small", "middle")
    parts = [*heading(history.subject, 10, _WIDTH - 10), axis, field, foot]
    return svg.document(_WIDTH, _HEAD + _HEIGHT + 24, title, parts)
