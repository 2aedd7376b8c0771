"""Plot of a history of numbers with what was found in it: levels, steps and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from swingbot.core.stats.findings import Findings, LevelChange
from swingbot.core.stats.findings_text import step_size, step_words

from . import svg

_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 16, 44, 46
_WIDTH, _HEIGHT = 900, 316


def findings_plot(
    title: str, labels: Sequence[str], values: Sequence[float], findings: Findings
) -> str:
    """SVG of the values in their order; `labels` are their x."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    y = svg.scale_for(list(values), bottom, _TOP)
    x = svg.AxisScale(-0.5, len(values) - 0.5, _LEFT, right)
    marks = svg.ticks(y.low, y.high)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    parts = [svg.text(_LEFT, 18, title, "title")]
    for value in marks:
        parts += [
            svg.line(_LEFT, y(value), right, y(value), "grid"),
            svg.text(_LEFT - 7, y(value) + 4, svg.tick_label(value, step), "soft small", "end"),
        ]
    parts += [svg.line(_LEFT, _TOP, _LEFT, bottom, "axis")]
    parts += [svg.line(_LEFT, bottom, right, bottom, "axis")]
    parts += _range_of_x(labels, x, bottom)
    parts += [
        _point(label, x(i), y(v), v)
        for i, (label, v) in enumerate(zip(labels, values, strict=True))
    ]
    for level in findings.levels:
        begin, end = level.ends
        parts.append(
            svg.line(x(level.first - 0.4), y(begin), x(level.last + 0.4), y(end), "head mean")
        )
    for change in findings.changes:
        parts += _step(change, labels, x, bottom)
    for shares in findings.mode_changes:
        at = x(shares.at - 0.5)
        parts += [
            svg.line(at, _TOP, at, bottom, "level third"),
            svg.text(at, _TOP - 6, "modes", "small", "middle"),
        ]
    if findings.ramp is not None:
        at = x(float(findings.ramp.at))
        words = f"ramp {step_size(findings.ramp)}"
        parts += [
            svg.line(at, _TOP, at, bottom, "level third"),
            svg.text(at, _TOP - 6, words, "small", "middle"),
        ]
    return svg.document(_WIDTH, _HEIGHT, title, parts)


def _range_of_x(labels: Sequence[str], x: svg.AxisScale, bottom: float) -> list[str]:
    words = "in the order of the file (the value axis does not start at 0)"
    return [
        svg.text(x(0.0), bottom + 16, labels[0][:20], "soft small"),
        svg.text(x(len(labels) - 1.0), bottom + 16, labels[-1][:20], "soft small", "end"),
        svg.text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, words, "soft small", "middle"),
    ]


def _point(label: str, x: float, y: float, value: float) -> str:
    words = svg.element("title", escape(f"{label[:80]}: {value:.6g}"))
    return svg.element("g", words, svg.disc(x, y, 2.5, "base boot"))


def _step(change: LevelChange, labels: Sequence[str], x: svg.AxisScale, bottom: float) -> list[str]:
    """A line at the likeliest place; one for each end where the place is a range."""
    ends = sorted({change.first, change.at, change.last})
    words = step_words(change, [label[:80] for label in labels])
    return [
        svg.element(
            "g",
            svg.element("title", escape(words)),
            *(
                svg.line(
                    x(at - 0.5),
                    _TOP,
                    x(at - 0.5),
                    bottom,
                    "level third" if at == change.at else "grid",
                )
                for at in ends
            ),
        ),
        svg.text(x(change.at - 0.5), _TOP - 6, step_size(change), "small", "middle"),
    ]
