"""Plots over commits: every boot of a bisection with its belief; a metric over the tips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import fmean
from typing import Any

from swingbot.core.text.plain import cut

from . import svg

_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 16, 60, 46
_HEIGHT = 316
_BISECTION_LEGEND = 380  # width in pixels
# Pixels of a character on average, in the widest of the fonts that pages are shown in.
_SMALL, _TITLE = 6.4, 8.4


@dataclass(frozen=True, slots=True)
class PlotSubject:
    """Subject of a plot: metric, unit job, testbox, unit and direction."""

    testbox: str
    unit_job: str
    metric: str
    unit: str
    better: str | None
    label: str | None

    @classmethod
    def of_bisection(cls, bisection: Mapping[str, Any]) -> PlotSubject:
        return cls(
            testbox=bisection["testbox"],
            unit_job=bisection["unit_job"],
            metric=bisection["metric"],
            unit=bisection.get("unit") or "",
            better=bisection.get("better"),
            label=bisection.get("label"),
        )

    @property
    def direction(self) -> str:
        return f"{self.better} is better" if self.better else "neither direction is better"


def heading(shown: PlotSubject, left: float, right: float, beside: float = 0.0) -> list[str]:
    """Three lines: metric, place, and the kind of machine, each cut where the picture ends.

    The first two also leave `beside` pixels free at the right.
    """
    room, ending = right - left - beside, f" on {shown.testbox}"
    of_job = max(8, int(room / _SMALL) - len(ending))
    label = cut(shown.label or "", int((right - left) / _SMALL))
    return [
        svg.text(left, 18, cut(shown.metric, int(room / _TITLE)), "title"),
        svg.text(left, 33, cut(shown.unit_job, of_job) + ending, "soft small"),
        *([svg.text(left, 47, label, "soft small")] if label else []),
    ]


def _value_axis(y: svg.AxisScale, right: float, bottom: float, words: str) -> list[str]:
    marks = svg.ticks(y.low, y.high)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    parts = []
    for value in marks:
        parts += [
            svg.line(_LEFT, y(value), right, y(value), "grid"),
            svg.text(_LEFT - 7, y(value) + 4, svg.tick_label(value, step), "soft small", "end"),
        ]
    parts.append(svg.text(16, (_TOP + bottom) / 2, words, "small", "middle", rotate=-90))
    return [
        *parts,
        svg.line(_LEFT, _TOP, _LEFT, bottom, "axis"),
        svg.line(_LEFT, bottom, right, bottom, "axis"),
    ]


def bisection_plot(bisection: Mapping[str, Any]) -> str:
    """Boot means over commits, above the belief per commit.

    A disc is a boot of the search, a diamond a boot of the confirmation, a cross a boot without a
    value.
    """
    points = bisection["points"]
    last = max(1, len(points) - 1)
    width, height = max(760, min(1136, _LEFT + _RIGHT + 48 * len(points) + 60)), 456
    floor, base_of_bars = 286.0, 416.0
    x = svg.AxisScale(-0.6, last + 0.6, _LEFT, width - _RIGHT)
    values = [entry["mean"] for entry in bisection["log"] if entry["mean"] is not None]
    title = f"bisection {bisection['id']}: {bisection['metric']} over {last} commits"
    y = svg.scale_for(values or [0.0, 1.0], floor, _TOP + 8)
    shown = PlotSubject.of_bisection(bisection)
    parts = heading(shown, _LEFT, width - _RIGHT, beside=_BISECTION_LEGEND)
    parts += _highlight(points, x, floor, base_of_bars)
    parts += _bisection_legend(width - _RIGHT)
    better = f", {bisection['better']} is better" if bisection.get("better") else ""
    words = f"{bisection.get('unit') or 'value'}, mean of a boot{better}"
    parts += (
        _value_axis(y, width - _RIGHT, floor, words)
        if values
        else [svg.text(_LEFT + 12, 150, "No boot has completed yet.", "soft")]
    )
    parts += [_observation(entry, x, y, floor) for entry in bisection["log"] if entry["seen_at"]]
    parts += _belief(points, x, width - _RIGHT, base_of_bars)
    parts += _marks(bisection, x, base_of_bars)
    for point in points:
        if last <= 34 or point["idx"] % 5 == 0:
            parts.append(
                svg.text(
                    x(point["idx"]),
                    base_of_bars + 15,
                    {0: "good", last: "bad"}.get(point["idx"], str(point["idx"])),
                    "soft small",
                    "middle",
                )
            )
    parts.append(
        svg.text(
            (_LEFT + width - _RIGHT) / 2,
            height - 8,
            "commit, oldest first (the table below names them)",
            "soft small",
            "middle",
        )
    )
    return svg.document(width, height, title, parts)


def _highlight(
    points: Sequence[Mapping[str, Any]], x: svg.AxisScale, floor: float, bottom: float
) -> list[str]:
    half = (x(1) - x(0)) / 2
    suspects = [point for point in points if point["state"] in ("culprit", "suspect")]
    return [
        svg.element(
            "rect",
            x=x(point["idx"]) - half,
            y=float(_TOP),
            width=2 * half,
            height=bottom - _TOP,
            class_="mark",
        )
        for point in suspects
    ]


def _bisection_legend(right: float) -> list[str]:
    x = right - _BISECTION_LEGEND + 10
    return [
        svg.disc(x, 14, 4.0, "base boot"),
        svg.text(x + 9, 18, "boot, search", "small"),
        svg.diamond(x + 98, 14, 5.0, "head boot"),
        svg.text(x + 108, 18, "boot, confirmation", "small"),
        svg.cross(x + 232, 14, 4.0),
        svg.text(x + 241, 18, "boot, no value", "small"),
        svg.element("path", d=f"M{x - 5:.1f} 28L{x + 5:.1f} 28L{x:.1f} 36Z", class_="coming"),
        svg.text(x + 9, 36, "next boot", "small"),
        svg.cross(x + 98, 32, 3.0, "cross shut"),
        svg.text(x + 108, 36, "not measurable", "small"),
        svg.text(x + 232, 36, "×10", "hint small", "middle"),
        svg.text(x + 246, 36, "hint from a person", "small"),
    ]


def _observation(entry: Mapping[str, Any], x: svg.AxisScale, y: svg.AxisScale, floor: float) -> str:
    # boots of a commit are side by side, always at the same position
    at = x(entry["idx"]) + ((entry["k"] * 37 % 11) - 5) * 0.6 * min(1.0, (x(1) - x(0)) / 24)
    words = f"commit {entry['idx']}, k={entry['k']}, {entry['phase']}"
    if entry["mean"] is None:
        mark = svg.cross(at, floor - 8, 4.0)
        words += f": {entry['skip'] or 'no value'}"
    else:
        confirmed = entry["phase"] == "confirm"
        mark = (
            svg.diamond(at, y(entry["mean"]), 5.0, "head boot")
            if confirmed
            else svg.disc(at, y(entry["mean"]), 4.0, "base boot")
        )
        words += f": mean {entry['mean']:.6g} of {len(entry['values'])} runs"
    return (
        svg.link(f"/boot/{entry['boot']}", words, mark)
        if entry["boot"]
        else svg.element("g", svg.element("title", escape(words)), mark)
    )


def _marks(bisection: Mapping[str, Any], x: svg.AxisScale, base: float) -> list[str]:
    """Marks above the bars.

    A cross is a commit that cannot or should not be measured, a factor a hint from a person, an
    arrow the next boot.
    """
    parts, y = [], base - 96
    coming = {request["idx"] for request in bisection.get("next") or ()}
    for point in bisection["points"]:
        at = x(point["idx"])
        if point.get("skipped") or point["state"] in ("does not build", "cannot be measured"):
            why = f"commit {point['idx']}: {point.get('skipped') or point['state']}"
            parts.append(
                svg.element(
                    "g", svg.element("title", escape(why)), svg.cross(at, y, 3.0, "cross shut")
                )
            )
        if point.get("hint", 1.0) != 1.0:
            words = svg.text(at, y + 4, f"×{point['hint']:g}", "hint small", "middle")
            parts.append(
                svg.element(
                    "g",
                    svg.element(
                        "title",
                        escape(
                            f"commit {point['idx']}: hint from a person,"
                            f" {point['hint']:g} times as likely"
                        ),
                    ),
                    words,
                )
            )
        if point["idx"] in coming:
            arrow = svg.element(
                "path",
                d=f"M{at - 5:.1f} {y - 12:.1f}L{at + 5:.1f} {y - 12:.1f}L{at:.1f} {y - 4:.1f}Z",
                class_="coming",
            )
            parts.append(
                svg.element(
                    "g", svg.element("title", f"the next boot is of commit {point['idx']}"), arrow
                )
            )
    return parts


def _belief(
    points: Sequence[Mapping[str, Any]], x: svg.AxisScale, right: float, base: float
) -> list[str]:
    """A bar for each commit: the probability that it is the culprit."""
    top = base - 88
    height = svg.AxisScale(0.0, 1.0, base, top)
    parts = []
    for value in (0.0, 0.5, 1.0):
        parts += [
            svg.line(_LEFT, height(value), right, height(value), "grid"),
            svg.text(
                _LEFT - 7, height(value) + 4, f"{value:.0%}".replace("%", " %"), "soft small", "end"
            ),
        ]
    parts.append(svg.text(16, (top + base) / 2, "P(culprit)", "small", "middle", rotate=-90))
    width = 0.7 * (x(1) - x(0))
    for point in points:
        if point["probability"]:
            up = height(min(1.0, point["probability"]))
            bar = svg.element(
                "rect",
                svg.element("title", f"commit {point['idx']}: {point['probability']:.4f}"),
                x=x(point["idx"]) - width / 2,
                y=up,
                width=width,
                height=base - up,
                class_="probability",
            )
            parts.append(bar)
    return [*parts, svg.line(_LEFT, base, right, base, "axis")]


def history_plot(
    shown: PlotSubject,
    points: Sequence[Mapping[str, Any]],
    marked: Mapping[str, str],
    before: int | None,
) -> str:
    """A metric over the tips of a branch: a disc per boot, a line through the means of the tips.

    Commits of `marked` are diamonds with that word. `points` are rows of `read.history`. Commits
    that were never a tip are drawn before tip number `before`, the first tip that contains them.
    """
    title = f"{shown.metric} of {shown.unit_job} on {shown.testbox} over the branch"
    tips = [point for point in points if point["place"] is not None]
    if not points:
        return svg.document(
            556,
            80,
            title,
            [svg.text(_LEFT, 44, "No tip of this branch has a value for this metric.", "soft")],
        )
    last = max((point["place"] for point in tips), default=0)
    width = max(556, min(1130, _LEFT + _RIGHT + 44 * (last + 2)))
    x = svg.AxisScale(-0.8, last + 0.8, _LEFT, width - _RIGHT)
    y = svg.scale_for(
        [boot["mean"] for point in points for boot in point["boots"]], _HEIGHT - _BOTTOM, _TOP
    )
    others = [point["commit"] for point in points if point["place"] is None]
    at = {point["commit"]: x(point["place"]) for point in tips} | {
        commit: x((last if before is None else before) - (len(others) - index) / (len(others) + 1))
        for index, commit in enumerate(others)
    }
    parts = [
        *heading(shown, _LEFT, width - _RIGHT),
        *_value_axis(
            y, width - _RIGHT, _HEIGHT - _BOTTOM, f"{shown.unit or 'value'} ({shown.direction})"
        ),
        svg.text(
            (_LEFT + width - _RIGHT) / 2,
            _HEIGHT - 10,
            "tips of the branch, oldest first (the value axis does not start at 0)",
            "soft small",
            "middle",
        ),
    ]
    path = "L".join(f"{at[point['commit']]:.1f} {y(_level(point)):.1f}" for point in tips)
    parts += [svg.element("path", d=f"M{path}", class_="base level")] if len(tips) > 1 else []
    for point in points:
        parts += _point(point, at[point["commit"]], y, marked.get(point["commit"]))
    return svg.document(width, _HEIGHT, title, parts)


def _level(point: Mapping[str, Any]) -> float:
    return fmean(boot["mean"] for boot in point["boots"])


def _point(point: Mapping[str, Any], x: float, y: svg.AxisScale, word: str | None) -> list[str]:
    """One commit: its boots, side by side, and its label where that matters."""
    parts = []
    for index, boot in enumerate(point["boots"]):
        shifted = x + (index - (len(point["boots"]) - 1) / 2) * 3.0
        mark = (
            svg.diamond(shifted, y(boot["mean"]), 5.0, "head boot")
            if word
            else svg.disc(shifted, y(boot["mean"]), 4.0, "base boot")
        )
        words = (
            f"{point['commit'][:12]} {point['subject'][:80]}, boot {boot['boot']}:"
            f" mean {boot['mean']:.6g} of {boot['runs']} run{'s' * (boot['runs'] != 1)}"
        )
        parts.append(svg.link(f"/boot/{boot['boot']}", words, mark))
    label = svg.text(x, _HEIGHT - _BOTTOM + 16, point["commit"][:7], "soft small", "middle")
    below = (
        [svg.element("a", label, href=f"/variant/{point['variant']}", target="_top")]
        if point["place"] is not None
        else []
    )
    above = (
        [svg.text(x, min(y(boot["mean"]) for boot in point["boots"]) - 9, word, "small", "middle")]
        if word
        else []
    )
    return [*parts, *below, *above]
