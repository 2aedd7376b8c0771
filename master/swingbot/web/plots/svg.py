"""SVG elements as text, scales and round ticks. All text is escaped in this module, once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

# Okabe and Ito's palette, safe for colour-blind readers; marks also differ in shape.
STYLE = """
svg { color-scheme: light dark; font: 12px system-ui, sans-serif; --ink: #1c2430; --soft: #5b6675;
      --grid: #dde2e9; --paper: #fff;
      --base: #0072b2; --head: #d55e00;
      --mark: #fdf0d5; --third: #a0568a; --bad: #b3261e; --good: #146c43; --warn: #8a5300 }
@media (prefers-color-scheme: dark) { svg { --ink: #e6eaf0; --soft: #9aa6b5; --grid: #333c48;
      --paper: #171c23;
      --base: #56b4e9; --head: #e69f00;
      --mark: #3a3220; --third: #cc79a7; --bad: #ffb4ab; --good: #8fdcb0; --warn: #f3cd8b } }
text { fill: var(--ink) } .soft { fill: var(--soft) } .small { font-size: 11px }
.title { font-weight: 600; font-size: 13px }
.paper { fill: var(--paper) } .grid { stroke: var(--grid); stroke-width: 1 }
.axis { stroke: var(--soft); stroke-width: 1 }
.base { fill: var(--base); stroke: var(--base) } .head { fill: var(--head); stroke: var(--head) }
.third { fill: var(--third); stroke: var(--third) }
.run { fill-opacity: .5; stroke-width: 0 } .boot { fill-opacity: .85; stroke-width: 0 }
.mean { stroke-width: 2.5 }
.level { stroke-width: 1.3; stroke-dasharray: 5 3; fill: none } .band { fill-opacity: .12;
      stroke: none }
.mark { fill: var(--mark) } .hollow { fill: var(--paper) } .cross { stroke: var(--soft);
      stroke-width: 1.8; fill: none }
.coming { fill: var(--ink) } .hint { fill: var(--third); font-weight: 600 }
.probability { fill: var(--third); stroke: none }
.worse { --c: var(--bad) } .better { --c: var(--good) } .changed { --c: var(--warn) }
.bar { stroke: var(--c, var(--soft)); stroke-width: 1.6 } .dot { fill: var(--c, var(--soft));
      stroke: var(--c, var(--soft)); stroke-width: 1.4 }
.open { fill: var(--paper) } .said { fill: var(--c, var(--soft));
      font-variant-numeric: tabular-nums } .stripe { fill: var(--grid); fill-opacity: .35 }
a:hover .run { fill-opacity: 1 }
"""


def attributes(**properties: object) -> str:
    """`class_="run", font_size=3` as ` class="run" font-size="3"`.

    Floats are rounded to a tenth of a pixel; None is left out.
    """
    words = []
    for name, value in properties.items():
        if value is None:
            continue
        text = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
        words.append(f' {name.rstrip("_").replace("_", "-")}="{escape(text)}"')
    return "".join(words)


def element(name: str, *children: str, **properties: object) -> str:
    return (
        f"<{name}{attributes(**properties)}>{''.join(children)}</{name}>"
        if children
        else f"<{name}{attributes(**properties)}/>"
    )


def text(
    x: float,
    y: float,
    words: str,
    class_: str | None = None,
    anchor: str = "start",
    rotate: int | None = None,
) -> str:
    turn = f"rotate({rotate} {x:.1f} {y:.1f})" if rotate is not None else None
    return element(
        "text", escape(words), x=x, y=y, class_=class_, text_anchor=anchor, transform=turn
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def disc(x: float, y: float, r: float, class_: str) -> str:
    return element("circle", cx=x, cy=y, r=r, class_=class_)


def diamond(x: float, y: float, r: float, class_: str) -> str:
    return element(
        "path",
        d=f"M{x:.1f} {y - r:.1f}L{x + r:.1f} {y:.1f}L{x:.1f} {y + r:.1f}L{x - r:.1f} {y:.1f}Z",
        class_=class_,
    )


def cross(x: float, y: float, r: float, class_: str = "cross") -> str:
    return element(
        "path",
        d=(
            f"M{x - r:.1f} {y - r:.1f}L{x + r:.1f} {y + r:.1f}M{x - r:.1f}"
            f" {y + r:.1f}L{x + r:.1f} {y - r:.1f}"
        ),
        class_=class_,
    )


def link(href: str, title: str, *children: str) -> str:
    return element("a", element("title", escape(title)), *children, href=href, target="_top")


def document(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    paper = element("rect", class_="paper", width=width, height=height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>{paper}{''.join(parts)}</svg>\n"
    )


@dataclass(frozen=True, slots=True)
class AxisScale:
    """A straight line from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def scale_for(values: list[float], start: float, end: float) -> AxisScale:
    """Return a scale that includes all values and a margin; equal values get a band around them."""
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.02 * abs(high) or 1.0
    return AxisScale(low - margin, high + margin, start, end)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values between low and high, 1, 2 or 5 times a power of ten apart."""
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step)
    return [index * step for index in range(first, math.floor(high / step) + 1)]


def tick_label(value: float, step: float) -> str:
    """Format with as many digits as the step needs, large numbers with k, M or G."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            factor = {"G": 1e9, "M": 1e6, "k": 1e3}[unit]
            return f"{value / factor:.{_decimals(step / factor)}f}{unit}"
    return f"{value:.{_decimals(step)}f}"


def _decimals(step: float) -> int:
    return max(0, min(9, -math.floor(math.log10(step) + 1e-9)))
