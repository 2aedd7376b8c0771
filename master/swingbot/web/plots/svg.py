"""SVG elements as text, scales and round ticks. All text is escaped in this module, once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

# Style of every plot: inside of a picture, and a style sheet of the pages that draw one inline.
STYLE: Final = (Path(__file__).parents[1] / "static" / "plot.css").read_text(encoding="utf-8")
Place = float | str  # pixels, or a length such as "12.5%"


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
    x: Place,
    y: float,
    words: str,
    class_: str | None = None,
    anchor: str = "start",
    rotate: int | None = None,
    dx: float | None = None,
) -> str:
    """`dx`: pixels to the right of `x`; `rotate` needs an `x` in pixels."""
    turn = f"rotate({rotate} {x:.1f} {y:.1f})" if rotate is not None else None
    kept = anchor if anchor != "start" else None
    return element(
        "text", escape(words), x=x, y=y, dx=dx, class_=class_, text_anchor=kept, transform=turn
    )


def line(x1: Place, y1: float, x2: Place, y2: float, class_: str | None) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def disc(x: Place, y: float, r: float, class_: str | None) -> str:
    return element("circle", cx=x, cy=y, r=r, class_=class_)


def document(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    paper = element("rect", class_="paper", width=width, height=height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {width} {height}"'
        f' width="{width}" height="{height}" role="img">'
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
    """Return a scale that includes all values and a margin; equal values get a band around them,
    also those that a float cannot tell from their ticks."""
    low, high = min(values), max(values)
    between = high - low if high - low > 1e-13 * abs(high) else 0.0
    margin = 0.08 * between or 0.02 * abs(high) or 1.0
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
