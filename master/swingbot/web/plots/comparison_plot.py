"""The result of a comparison by test and testbox: a line a metric, with its boots on one axis.

Each line has a strip: the mean of each boot of base and head, and the interval of the change, in
percent of base. Strips are part of the page; their positions are percentages of the cell, so they
fit every width.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Any, Final

from markupsafe import Markup

from swingbot.core.model.comparison_row import CHANGED, Key, folded, key_of

from ..http.filters import interval, percent
from ..ports import Row
from . import svg

_HEIGHT: Final = 38
_BASE_Y, _HEAD_Y, _CHANGE_Y = 8, 18, 30
_MARGIN: Final = 0.03  # of the axis, at each end
_ROOM: Final = 1.5  # intervals and boots widen the axis by at most this share of the changes
_MOST_NAMED: Final = 3

BootMeans = Mapping[tuple[Key, str], Sequence[tuple[str, float]]]  # (key, side) -> (boot, mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLine:
    """A row of the comparison, its aliases, and its strip."""

    row: Row
    aliases: tuple[str, ...]
    strip: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricTable:
    lines: tuple[MetricLine, ...]
    axis: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTest:
    """One unit job on one testbox: the benchmark's own metrics, and counters that explain them."""

    unit_job: str
    testbox: str
    label: str | None
    table: MetricTable
    counters: MetricTable

    @property
    def counter_words(self) -> str:
        """`5 counters, 2 changed: perf-stat.instructions +12.0 %, ...`."""
        rows = [line.row for line in self.counters.lines]
        changed = sorted(
            (row for row in rows if row["verdict"] in CHANGED and row["change_pct"] is not None),
            key=lambda row: -abs(row["change_pct"]),
        )
        named = [f"{row['metric']} {percent(row['change_pct'])}" for row in changed[:_MOST_NAMED]]
        more = ", …" if len(changed) > _MOST_NAMED else ""
        what = f"{len(changed)} changed: {', '.join(named)}{more}" if changed else "none changed"
        return f"{len(rows)} counter{'s' * (len(rows) != 1)}, {what}"


def measured_tests(rows: Sequence[Row], samples: Iterable[Row] = ()) -> list[MeasuredTest]:
    """The rows of a comparison by test and testbox, in their order, aliases folded.

    `samples`: rows of `read.boot_means_of_comparison`, or samples, whose means are computed.

    All benchmark metrics share one axis, and the counters of each test another.
    """
    means = _boot_means(samples)
    shown = folded(rows)
    order = list(dict.fromkeys((row["unit_job"], row["testbox"]) for row in shown))
    scale = _scale([row for row in shown if not row["counter"]], means)
    tests = []
    for unit_job, testbox in order:
        mine = [row for row in shown if (row["unit_job"], row["testbox"]) == (unit_job, testbox)]
        counters = [row for row in mine if row["counter"]]
        tests.append(
            MeasuredTest(
                unit_job=unit_job,
                testbox=testbox,
                label=mine[0].get("label"),
                table=_table([row for row in mine if not row["counter"]], means, scale),
                counters=_table(counters, means, _scale(counters, means)),
            )
        )
    return tests


def result_of(rows: Sequence[Row], samples: Iterable[Row]) -> Row:
    """What the page of a comparison shows of its rows.

    Keys: `tests`, `headlines` (benchmark metrics that changed, worst first), `unclear` (number of
    benchmark metrics without a verdict).
    """
    own = [row for row in folded(rows) if not row["counter"]]
    return {
        "tests": measured_tests(rows, samples),
        "headlines": [row for row in own if row["verdict"] in CHANGED],
        "unclear": sum(row["verdict"] in ("unclear", "invalid") for row in own),
    }


def _table(rows: Sequence[Row], means: BootMeans, scale: svg.AxisScale) -> MetricTable:
    lines = tuple(
        MetricLine(row=row, aliases=row["aliases"], strip=_strip(row, means, scale)) for row in rows
    )
    return MetricTable(lines=lines, axis=_axis(scale))


def _boot_means(samples: Iterable[Row]) -> BootMeans:
    values: dict[tuple[Key, str], dict[str, list[float]]] = {}
    for sample in samples:
        boots = values.setdefault((key_of(sample), sample["side"]), {})
        boots.setdefault(sample["boot"], []).append(sample["value"])
    return {
        place: [(boot, fmean(of_boot)) for boot, of_boot in boots.items()]
        for place, boots in values.items()
    }


def _boots(row: Row, side: str, means: BootMeans) -> list[tuple[str, float]]:
    """Boots of a side: id, and mean in percent above that of base."""
    level = row["base"]["mean"] if row["base"] else None
    if not level:
        return []
    return [(boot, 100 * (mean / level - 1)) for boot, mean in means.get((key_of(row), side), ())]


def _scale(rows: Sequence[Row], means: BootMeans) -> svg.AxisScale:
    """An axis in percent that has 0 and all changes, and intervals and boots if near enough."""
    changes = [row["change_pct"] for row in rows if row["change_pct"] is not None]
    matters = max((row.get("min_effect_pct") or 0.0 for row in rows), default=0.0)
    low, high = min([0.0, -matters, *changes]), max([0.0, matters, *changes])
    room = _ROOM * (high - low) or 1.0
    further = [
        value
        for row in rows
        for value in (
            *(end for end in row["interval_pct"] or () if end is not None),
            *(value for side in ("base", "head") for _, value in _boots(row, side, means)),
        )
    ]
    low, high = max(low - room, min([low, *further])), min(high + room, max([high, *further]))
    margin = _MARGIN * (high - low) or 1.0
    return svg.AxisScale(low - margin, high + margin, 0.0, 100.0)


def _place(x: svg.AxisScale, value: float) -> str:
    return f"{x(min(x.high, max(x.low, value))):.2f}%"


def _line(x1: str, y1: float, x2: str, y2: float, class_: str) -> str:
    return svg.element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _axis(x: svg.AxisScale) -> Markup:
    marks = svg.ticks(x.low, x.high, about=4)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    parts = []
    for mark in marks:
        label = svg.tick_label(mark, step).replace("-", "\u2212")
        anchor = "start" if x(mark) < 8 else "end" if x(mark) > 92 else "middle"
        words = f"{'+' if mark > 0 else ''}{label} %"
        parts.append(
            svg.element("text", escape(words), x=_place(x, mark), y=11, text_anchor=anchor)
        )
        parts.append(_line(_place(x, mark), 14, _place(x, mark), 18, "tick"))
    # not escaped again: names and numbers above are
    return Markup(svg.element("svg", *parts, class_="strip axis", height=18, aria_hidden="true"))


def _strip(row: Row, means: BootMeans, x: svg.AxisScale) -> Markup:
    parts = []
    if matters := row.get("min_effect_pct"):
        low, high = x(max(x.low, -matters)), x(min(x.high, matters))
        place = {"x": f"{low:.2f}%", "width": f"{high - low:.2f}%", "y": 0, "height": _HEIGHT}
        parts.append(svg.element("rect", class_="band", **place))
    parts.append(_line(_place(x, 0.0), 0, _place(x, 0.0), _HEIGHT, "zero"))
    for side, y in (("base", _BASE_Y), ("head", _HEAD_Y)):
        parts += [_dot(x, side, y, *boot) for boot in _boots(row, side, means)]
    parts += _change(row, x)
    label = f"change {percent(row['change_pct'])}, 95 % interval {interval(row['interval_pct'])}"
    names = {"class_": f"strip {row['verdict']}", "height": _HEIGHT, "role": "img"}
    return Markup(svg.element("svg", *parts, aria_label=label, **names))


def _dot(x: svg.AxisScale, side: str, y: int, boot: str, value: float) -> str:
    """A boot; beyond the axis it is hollow, at the end."""
    words = svg.element("title", escape(f"{side}, boot {boot}: {percent(value)} of base's mean"))
    inside = "" if x.low <= value <= x.high else " beyond"
    return svg.element(
        "circle", words, cx=_place(x, value), cy=y, r=3.2, class_=f"{side}-dot{inside}"
    )


def _change(row: Row, x: svg.AxisScale) -> list[str]:
    """The interval with caps (none at an end beyond the axis) and the change."""
    parts: list[str] = []
    bounds: list[Any] = [end for end in row["interval_pct"] or () if end is not None]
    if len(bounds) == 2:
        parts.append(_line(_place(x, bounds[0]), _CHANGE_Y, _place(x, bounds[1]), _CHANGE_Y, "bar"))
        parts += [
            _line(_place(x, end), _CHANGE_Y - 5, _place(x, end), _CHANGE_Y + 5, "bar")
            for end in bounds
            if x.low <= end <= x.high
        ]
    if row["change_pct"] is not None:
        place = {"cx": _place(x, row["change_pct"]), "cy": _CHANGE_Y, "r": 4.2}
        claimed = "" if row["verdict"] in CHANGED else " open"
        parts.append(svg.element("circle", class_=f"dot{claimed}", **place))
    return parts
