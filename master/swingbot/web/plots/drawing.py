"""What all plots share. In a page a plot takes the width that there is: horizontal places are
shares of it, heights and letters are pixels. As a picture it has a fixed width.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from swingbot.core.text.plain import clean, cut

from . import svg

LEFT: Final = 74  # width of a value axis, in pixels
LETTER: Final = 6.6  # approximate width of a character of the small font, in pixels
_TITLE_LETTER: Final = 8.4
_WIDTH: Final = 1130  # of a picture
_RIGHT: Final = 20
_HEAD: Final = 56  # height of the heading of a picture
# Pixels of the field of values, beginning with a telephone's, and the class of labels that only
# wider ones have room for (static/plot.css).
FIELDS: Final = ((255.0, ""), (940.0, " w2"), (1500.0, " w3"))
LOOKS: Final = ("base", "head", "green", "third", "amber", "sky")


class EscapedHtml(str):
    """HTML that templates take as it is. Plots are drawn by the plain package too, which lacks
    markupsafe.
    """

    __slots__ = ()

    def __html__(self) -> str:
        return self


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

    @classmethod
    def of_file(cls, name: str) -> PlotSubject:
        """Of numbers of which nothing else is known."""
        return cls(testbox="", unit_job="", metric=name, unit="", better=None, label=None)

    @property
    def direction(self) -> str:
        return f"{self.better} is better" if self.better else "neither direction is better"

    @property
    def place(self) -> str:
        return f"{self.unit_job} on {self.testbox}" if self.unit_job else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """SVG with shares of the width: an `axis` of LEFT pixels, if any, beside a `field` that takes
    the rest. `words` say what is drawn; without a field, why nothing is."""

    title: str
    words: str
    field: str = ""
    axis: str = ""
    height: int = 0

    def inline(self) -> EscapedHtml:
        """As HTML, as wide as what is around it; empty if nothing is drawn."""
        if not self.field:
            return EscapedHtml()
        field = f'<svg class="plot field" width="100%" height="{self.height}" role="group"'
        axis = (
            f'<svg class="plot" width="{LEFT}" height="{self.height}" aria-hidden="true">'
            f"{self.axis}</svg>"
            if self.axis
            else ""
        )
        label = escape(clean(self.title))
        return EscapedHtml(  # of the functions of `svg`, which escape
            f'<div class="drawn">{axis}{field} aria-label="{label}">{self.field}</svg></div>'
        )

    def picture(self, subject: PlotSubject) -> str:
        """As an SVG document."""
        title = clean(self.title)
        if not self.field:
            return svg.document(556, 80, title, [svg.text(24, 44, self.words, "soft")])
        left = LEFT if self.axis else _RIGHT
        axis = svg.element("svg", self.axis or "\n", y=_HEAD, width=left, height=self.height)
        width = _WIDTH - left - _RIGHT
        field = svg.element("svg", self.field, x=left, y=_HEAD, width=width, height=self.height)
        lines = textwrap.wrap(self.words, int((_WIDTH - 2 * _RIGHT) / LETTER))
        end = _HEAD + self.height
        foot = [
            svg.text(_WIDTH / 2, end + 12 + 15 * at, words, "soft small", "middle")
            for at, words in enumerate(lines)
        ]
        parts = [*_heading(subject, 10, _WIDTH - 10), axis, field, *foot]
        return svg.document(_WIDTH, end + 9 + 15 * len(lines), title, parts)


def _heading(shown: PlotSubject, left: float, right: float) -> list[str]:
    """Three lines: metric, place, and the kind of machine, each cut where the picture ends."""
    room, ending = right - left, f" on {shown.testbox}" if shown.testbox else ""
    label = cut(shown.label or "", int(room / LETTER))
    return [
        svg.text(left, 18, cut(shown.metric, int(room / _TITLE_LETTER)), "title"),
        svg.text(
            left,
            33,
            cut(shown.unit_job, max(8, int(room / LETTER) - len(ending))) + ending,
            "soft small",
        ),
        *([svg.text(left, 47, label, "soft small")] if label else []),
    ]


def value_axis(y: svg.AxisScale, top: float, bottom: float, words: str) -> str:
    """A vertical axis with its labels, LEFT pixels wide."""
    marks = svg.ticks(y.low, y.high)
    step = marks[1] - marks[0] if len(marks) > 1 else 1.0
    return "\n".join(
        [
            *(
                svg.text(LEFT - 7.0, y(v) + 4, svg.tick_label(v, step), "soft small", "end")
                for v in marks
            ),
            svg.text(14.0, (top + bottom) / 2, words, "small", "middle", rotate=-90),
            svg.line(LEFT, top, LEFT, bottom, "axis"),
        ]
    )


def title(words: str) -> str:
    return f"<title>{escape(clean(words))}</title>"


def linked(href: str, words: str, *parts: str, class_: str | None = None) -> str:
    """Parts with a title, and a link unless `href` is empty."""
    if not href:
        return titled(words, *parts)
    return svg.element("a", title(words), *parts, href=href, class_=class_)


def titled(words: str, *parts: str) -> str:
    return svg.element("g", title(words), *parts)


def shape(number: int, x: str, y: float, r: float) -> str:
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


def fitting(labels: Sequence[tuple[float, str]]) -> dict[int, str]:
    """Indices of the labels (share of the width, words) that have room, with their class: in a
    narrow field, and between those in wider ones."""
    kept: dict[int, str] = {}
    for width, class_ in FIELDS:
        taken = sorted((labels[at][0], at) for at in kept)
        free, following = float("-inf"), 0
        for at, (share, words) in enumerate(labels):
            half = LETTER * len(words) / 2 + 3
            middle = share * width / 100
            if at in kept:
                free, following = middle + half, following + 1
                continue
            if middle - half < free:
                continue
            if following < len(taken):
                other, index = taken[following]
                if middle + half > other * width / 100 - LETTER * len(labels[index][1]) / 2 - 3:
                    continue
            kept[at] = class_
            free = middle + half
    return kept


def legend(names: Sequence[str]) -> list[tuple[EscapedHtml, str]]:
    """The mark of each series as SVG, and its name."""
    return [
        (
            EscapedHtml(
                f'<svg class="plot" viewBox="-6 -6 12 12" aria-hidden="true">'
                f'<g class="{LOOKS[at]} boot">{shape(at, "0", 0.0, 4.0)}</g></svg>'
            ),
            name,
        )
        for at, name in enumerate(names)
    ]
