"""A metric over commits: boots, noise bands, releases, swings, incidents, mails; in a bisection the
probability of each commit, what people said of it, and the next boots.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from swingbot.core.text.plain import cut

from . import svg
from .drawing import (
    LETTER,
    LOOKS,
    Drawing,
    PlotSubject,
    fitting,
    linked,
    shape,
    title,
    titled,
    value_axis,
)

_TOP: Final = 54  # where values begin; above are releases, incidents and swings
_BOTTOM: Final = 306
_HEIGHT: Final = 330
# Where the probabilities of commits are: above _BELIEF_TOP stands what people said.
_BELIEF_TOP: Final = 362
_BELIEF: Final = 440  # its axis, and the height with it
_BELIEF_HEIGHT: Final = 446
_LEAST_BELIEF: Final = 0.005  # lower ones would be bars of less than half a pixel
MOST_MARKS: Final = 400  # boots that are drawn
_GAP: Final = 0.2  # the narrowest bar of commits without a boot, in per cent of the width
_NAMES: Final = 400  # commits that are tried as labels of the axis
# Where marks of a kind stand, and their look.
_LINES: Final = {
    "swing": (44.0, "third"),
    "incident": (27.0, "head"),
    "no value": (_BOTTOM - 11.0, "amber"),
    "person": (_BELIEF_TOP - 20.0, "third"),
    "next": (_BELIEF_TOP - 8.0, "sky"),
}
MOST_SERIES: Final = len(LOOKS)
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
    """What is known of a commit: a short name, its page if it has one, and what it says."""

    column: int
    id: str
    href: str
    words: str
    kind: str  # a key of _LINES, or mail
    of: str = ""  # the incident of a mail


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPeriod:
    """A time in which the testbox was out of service, in seconds since 1970."""

    begin: float
    end: float
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySeries:
    """Boots by column, each {boot, mean, runs}, and {booted_at} as text in UTC for times; a mean is
    drawn `scale` times as high."""

    name: str
    boots: Sequence[Sequence[Mapping[str, Any]]]
    scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is drawn. A column is a commit, oldest first: {commit, subject, author, release,
    variant}. With `by_time` each boot is drawn at its time, else at its commit. `beliefs`: the
    probability of each commit to be the culprit; `suspects`: columns that stand out."""

    subject: PlotSubject
    columns: Sequence[Mapping[str, Any]]
    series: Sequence[HistorySeries]
    bands: Sequence[NoiseBand] = ()
    marks: Sequence[HistoryMark] = ()
    periods: Sequence[HistoryPeriod] = ()
    percent_of: str = ""  # values are in per cent of this commit
    by_time: bool = False
    most: int = MOST_MARKS  # boots that are drawn
    # First and last time of the axis; empty: those of the boots.
    times: Sequence[str] = ()
    some: bool = False  # boots of another plot, for several metrics: commits may have others
    beliefs: Sequence[float | None] = ()
    suspects: Sequence[int] = ()


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
    filled = [at for at, of in enumerate(series.boots) if of]
    for _, piece in groupby(filled, key=lambda at: at // size):
        found = [(one["mean"], at, n) for at in piece for n, one in enumerate(series.boots[at])]
        for _, at, n in sorted({min(found), max(found)}, key=lambda one: one[1:]):
            drawn.append(DrawnBoot(at, series.boots[at][n]))
    return drawn, size


class _HistoryParts:
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
        times = self.history.times or [
            boot["booted_at"] for one in self.history.series for of in one.boots for boot in of
        ]
        low, high = (_seconds(min(times)), _seconds(max(times))) if times else (0.0, 1.0)
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
                if times := [boot["booted_at"] for boot in boots]:
                    spans[at] = _seconds(min(times)), _seconds(max(times))
        return spans

    def share(self, x: float) -> str:
        return f"{self.x(x):.2f}%"

    def middle(self, column: int) -> float | None:
        if not self.history.by_time:
            return float(column)
        span = self.spans.get(column)
        return None if span is None else (span[0] + span[1]) / 2

    def field(self) -> str:
        """Everything that lies to the right of the value axis."""
        return "\n".join(  # a line each: a text browser shows the words alone
            [
                *(svg.line("0%", self.y(v), "100%", self.y(v), "grid") for v in self._ticks()),
                *self._suspects(),
                *self._periods(),
                *self._bands(),
                *self._releases(),
                *self._gaps(),
                *(part for at in range(len(self.chosen)) for part in self._boots(at)),
                *(part for kind in _LINES for part in self._line_of_marks(kind)),
                svg.line("0%", _BOTTOM, "100%", _BOTTOM, "axis"),
                *self._names(),
                *self._beliefs(),
            ]
        )

    def _ticks(self) -> list[float]:
        return svg.ticks(self.y.low, self.y.high)

    def axis(self) -> str:
        """The value axis, and that of the probabilities."""
        shown = self.history.subject
        unit = f"% of {self.history.percent_of[:12]}" if self.history.percent_of else shown.unit
        direction = f" ({shown.direction})" if shown.place and not self.history.some else ""
        words = cut(f"{unit or 'value'}{direction}", 40)
        axis = value_axis(self.y, _TOP, _BOTTOM, words)
        if not self.history.beliefs:
            return axis
        up = svg.AxisScale(0.0, 100.0, _BELIEF, _BELIEF_TOP)
        return f"{axis}\n{value_axis(up, _BELIEF_TOP, _BELIEF, 'P(culprit), %')}"

    def _suspects(self) -> list[str]:
        bottom = _BELIEF if self.history.beliefs else _BOTTOM
        width = f"{self.x(1) - self.x(0):.2f}%"
        return [
            svg.element(
                "rect", x=self.share(at - 0.5), y=_TOP, width=width, height=bottom - _TOP,
                class_="mark",
            )
            for at in self.history.suspects
        ]  # fmt: skip

    def _beliefs(self) -> list[str]:
        """A bar for each commit: the probability that it is the culprit."""
        if not self.history.beliefs:
            return []
        up = svg.AxisScale(0.0, 1.0, _BELIEF, _BELIEF_TOP)
        parts = [svg.line("0%", up(v), "100%", up(v), "grid") for v in (0.5, 1.0)]
        width = f"{0.7 * (self.x(1) - self.x(0)):.2f}%"
        for at, belief in enumerate(self.history.beliefs):
            if belief is None or belief < _LEAST_BELIEF:
                continue
            column, top = self.history.columns[at], up(min(1.0, belief))
            place = {"x": self.share(at - 0.35), "y": top, "width": width, "height": _BELIEF - top}
            bar = svg.element("rect", class_="probability", **place)
            words = f"{_commit(column)}: {belief:.4f}"
            parts.append(linked(f"/variant/{column['variant']}", words, bar))
        return [*parts, svg.line("0%", _BELIEF, "100%", _BELIEF, "axis")]

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
                titled(
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
            at: _seconds(min(one["booted_at"] for one in of))
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
            level
            if band.low == band.high
            else (
                f"{level}; noise alone keeps a boot within {band.low - half:.6g} and"
                f" {band.high - half:.6g}"
            )
        )
        if band.rise and band.low != band.high:
            words += f", at the end {band.low + half:.6g} and {band.high + half:.6g}"
        points = " ".join(f"{at:g},{edge:.1f}" for at, edge in corners)
        return [
            svg.element("polygon", title(words), points=points, class_="base band"),
            svg.line(left, height(begin), right, height(end), "base level"),
        ]

    def _releases(self) -> list[str]:
        found = [
            (middle, column["release"])
            for at, column in enumerate(self.history.columns)
            if column["release"] and (middle := self.middle(at)) is not None
        ]
        names = [cut(name, 14) for _, name in found]
        placed = fitting([(self.x(x), name) for (x, _), name in zip(found, names, strict=True)])
        parts = [svg.line(self.share(x), 16, self.share(x), _BOTTOM, "axis") for x, _ in found]
        return parts + [
            svg.text(self.share(found[at][0]), 11, names[at], f"small{class_}", "middle")
            for at, class_ in placed.items()
        ]

    def _gaps(self) -> list[str]:
        """Commits without a boot here, as bars along the axis, but for those too narrow."""
        if self.history.by_time or self.history.beliefs or self.history.some:
            return []
        parts, columns, at, least = [], self.history.columns, 0, self._least_gap()
        boots = self.history.series[0].boots
        while at < len(columns):
            end = at
            while end < len(columns) and not boots[end]:
                end += 1
            if end - at >= least:
                number = f"{end - at} commits have" if end - at > 1 else "1 commit has"
                words = f"{number} no boot here: {columns[at]['commit'][:12]}"
                if end - at > 1:
                    words += f" to {columns[end - 1]['commit'][:12]}"
                width = f"{self.x(end - 0.5) - self.x(at - 0.5):.2f}%"
                place = {"x": self.share(at - 0.5), "y": _BOTTOM - 5, "width": width, "height": 5}
                parts.append(titled(words, svg.element("rect", class_="gap", **place)))
            at = end + 1
        return parts

    def _least_gap(self) -> int:
        """Commits of the narrowest bar that is drawn."""
        return math.ceil(_GAP * len(self.history.columns) / 100)

    def _boots(self, number: int) -> list[str]:
        series, (chosen, size) = self.history.series[number], self.chosen[number]
        room, radius = self.x(1) - self.x(0), 3.5 if len(chosen) < 200 else 2.5
        parts, before, index = [], -1, 0
        if self.history.some:
            return [*self._trace(number), *self._counters(number, radius)]
        for drawn in chosen:
            column, boot = self.history.columns[drawn.column], drawn.boot
            index = index + 1 if drawn.column == before else 0
            before, count = drawn.column, len(series.boots[drawn.column])
            at = self.x(_seconds(boot["booted_at"]) if self.history.by_time else drawn.column)
            if not self.history.by_time and not size:
                at += (index - (count - 1) / 2) * min(0.3, 0.8 * room / count)
            words = _boot_words(column, boot, series.name if number else "")
            if series.scale != 1.0:
                words += f", {boot['mean'] * series.scale:.5g} %"
            if count > 1:
                level = sum(one["mean"] for one in series.boots[drawn.column]) / count
                words += f"; level {level:.6g} of {count} boots"
            mark = shape(number, f"{at:.2f}%", self.y(boot["mean"] * series.scale), radius)
            href = "" if boot["boot"] is None else f"/boot/{boot['boot']}"
            parts.append(linked(href, words, mark))
        return [svg.element("g", *parts, class_=f"{LOOKS[number]} boot")]

    def _at(self, drawn: DrawnBoot) -> float:
        """Where a boot is, in per cent of the width."""
        by_time = self.history.by_time
        return self.x(_seconds(drawn.boot["booted_at"]) if by_time else drawn.column)

    def _trace(self, number: int) -> list[str]:
        """A line through the marks of one of several metrics, in a box as that of bands."""
        series, places = self.history.series[number], []
        for drawn in self.chosen[number][0]:
            height = self.y(drawn.boot["mean"] * series.scale)
            places.append(f"{10 * self._at(drawn):.0f},{height:.0f}")
        line = svg.element("polyline", points=" ".join(places), class_=f"{LOOKS[number]} trace")
        frame = {"viewBox": f"0 0 1000 {_HEIGHT}", "preserveAspectRatio": "none"}
        return [svg.element("svg", line, width="100%", height=_HEIGHT, **frame)]

    def _counters(self, number: int, radius: float) -> list[str]:
        """Marks of one of several metrics, each in few words."""
        series, parts = self.history.series[number], []
        for drawn in self.chosen[number][0]:
            value, boot = drawn.boot["mean"] * series.scale, drawn.boot["boot"]
            commit = self.history.columns[drawn.column]["commit"][:12]
            words = f"{commit} {boot}: {series.name} {value:.5g} %"
            mark = shape(number, f"{self._at(drawn):.2f}%", self.y(value), radius)
            parts.append(linked(f"/boot/{boot}", words, mark))
        return [svg.element("g", *parts, class_=f"{LOOKS[number]} boot")]

    def _line_of_marks(self, kind: str) -> list[str]:
        """Marks of a kind in a line, each with a guide to its commit; mails beside incidents."""
        (y, look), mails = _LINES[kind], {}
        if kind == "incident":
            mails = {one.of: one for one in self.history.marks if one.kind == "mail"}
        found = [
            (self.x(middle), mark)
            for mark in sorted(self.history.marks, key=lambda one: one.column)
            if mark.kind == kind and (middle := self.middle(mark.column)) is not None
        ]
        said = [
            (share, f"  {mark.id} {mails[mark.id].id if mark.id in mails else ''}")
            for share, mark in found
        ]
        placed, parts = fitting(said), []
        for at, (share, mark) in enumerate(found):
            x, side = f"{share:.2f}%", -1 if share > 90 else 1
            end = _BOTTOM if y < _BOTTOM else _BELIEF
            parts.append(svg.line(x, y, x, end, "guide"))
            width, anchor = placed.get(at, " w4"), "end" if side < 0 else "start"
            diamond = svg.element("g", shape(3, x, y, 5.0), class_=f"{look} boot")
            label = svg.text(x, y + 4, mark.id, f"small{width}", anchor, dx=side * 8.0)
            parts.append(linked(mark.href, mark.words, diamond, label))
            if mail := mails.get(mark.id):
                further = side * (8.0 + LETTER * (len(mark.id) + 1))
                label = svg.text(x, y + 4, mail.id, "small", anchor, dx=further)
                parts.append(linked(mail.href, mail.words, label, class_=width.strip() or None))
        return parts

    def _names(self) -> list[str]:
        """Abbreviated commits below the axis, as many as fit; of many, each of equal steps."""
        columns = self.history.columns
        found = [
            (self.x(middle), columns[at])
            for at in range(0, len(columns), 1 + len(columns) // _NAMES)
            if (middle := self.middle(at)) is not None
        ]
        names = [_short(column) for _, column in found]
        placed = fitting([(share, name) for (share, _), name in zip(found, names, strict=True)])
        parts = []
        for at, class_ in placed.items():
            share, column = found[at]
            label = svg.text(f"{share:.2f}%", _BOTTOM + 16, names[at], "soft small", "middle")
            href = f"/variant/{column['variant']}" if column["variant"] else None
            hidden = class_.strip() or None  # with the link, which has no other words
            parts.append(svg.element("a" if href else "g", label, href=href, class_=hidden))
        return parts

    def words(self) -> str:
        """What is drawn, in a sentence."""
        what = "each at its time" if self.history.by_time else "commits, oldest first"
        size = max((size for _, size in self.chosen), default=0)
        if self.history.some:
            which = "in some of the boots" if size else "in the boots"
            return (
                f"A mark is a metric {which} drawn above; {what}; the value axis does not start"
                " at 0."
            )
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
        if self.history.beliefs:
            marks += "; a bar below is the probability of a commit (from 0.5 %)"
        return f"{marks}; {what}; the value axis does not start at 0."


def _short(column: Mapping[str, Any]) -> str:
    return column["commit"][:7] if column["variant"] else cut(column["commit"], 20)


def _commit(column: Mapping[str, Any]) -> str:
    """A commit in words: name, subject, author."""
    author = cut(column["author"].partition("<")[0].strip(), 24) or "author not known"
    return f"{column['commit'][:12]} {cut(column['subject'], 60)} ({author})"


def _boot_words(column: Mapping[str, Any], boot: Mapping[str, Any], series: str) -> str:
    if boot["boot"] is None:  # a number of a file
        return f"{column['commit']}: {boot['mean']:.6g}"
    runs = f"{boot['runs']} run{'s' * (boot['runs'] != 1)}"
    of = f" ({series})" if series else ""
    return f"{_commit(column)}, boot {boot['boot']}{of}: mean {boot['mean']:.6g} of {runs}"


def _seconds(text: str) -> float:
    """A time of a boot in seconds since 1970; that of thousands is taken where it is needed."""
    return datetime.fromisoformat(text).timestamp()


def _near(values: Sequence[float], ends: Sequence[float]) -> list[float]:
    """Return the ends of bands unless they would hide the points."""
    if not values:
        return []
    low, high = min(values), max(values)
    room = 2.0 * (high - low) or abs(high) * 0.1
    return [end for end in ends if low - room <= end <= high + room]


def metric_plot(history: History) -> Drawing:
    """The plot of a history."""
    shown = history.subject
    name = f"{shown.metric} of {shown.place} over commits" if shown.place else shown.metric
    parts = _HistoryParts(history)
    if parts.empty and not history.beliefs:
        return Drawing(title=name, words=_EMPTY)
    return Drawing(
        title=name,
        words=parts.words(),
        field=parts.field(),
        axis=parts.axis(),
        height=_BELIEF_HEIGHT if history.beliefs else _HEIGHT,
    )
