"""Numbers in words: levels, percentages with their direction, probabilities, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

_LONGEST_NUMBER = 15  # characters; numbers that would be longer are printed with an exponent


def _decimals(value: float, digits: int) -> int | None:
    """Decimals that show `digits` significant digits of `value`; None where only an exponent keeps it readable."""
    exponent = math.floor(math.log10(abs(value))) if value else 0
    return max(0, digits - 1 - exponent) if -4 <= exponent < 15 else None


def levels(*values: float | None) -> list[str]:
    """Means that stand under each other: equally many decimals, five significant digits of the smallest.

    So a percentage printed beside two levels can be recomputed from them to 0.01 %.
    """
    return _aligned(values, 5, "missing")


def spreads(*values: float | None) -> list[str]:
    """Standard deviations that stand under each other, three significant digits of the smallest; one boot has none."""
    return _aligned(values, 3, "n/a")


def readings(*values: float | None) -> list[str]:
    """Values that stand under each other and are not compared: three significant digits of the largest.

    Whole numbers stay whole, and a missing one is empty.
    """
    known = [value for value in values if value is not None]
    if all(value == int(value) for value in known):
        return ["" if value is None else f"{value:.0f}" for value in values]
    decimals = _decimals(max(map(abs, known)), 3)
    if decimals is None:
        return ["" if value is None else f"{value:.2e}" for value in values]
    return ["" if value is None else f"{value:.{decimals}f}" for value in values]


def _aligned(values: Sequence[float | None], digits: int, none: str) -> list[str]:
    decimals = [_decimals(value, digits) for value in values if value]
    most = max((d for d in decimals if d is not None), default=0)
    texts = [none if value is None else f"{value:.{most}f}" for value in values]
    if None in decimals or max(map(len, texts)) > _LONGEST_NUMBER:
        texts = [
            none if value is None else f"{value:.{digits - 1}e}" if value else "0"
            for value in values
        ]
    width = max(map(len, texts))
    return [text.rjust(width) for text in texts]


def percent(value: float, digits: int = 1) -> str:
    """A percentage without its sign: 18.0%, 0.04%."""
    size = abs(value)
    return f"{size:.{max(digits, 2)}f}%" if 0.005 <= size < 0.095 else f"{size:.{digits}f}%"


def rounded_up(pct: float) -> float:
    """To two significant digits, so that what is excluded beyond it stays excluded."""
    step = 10.0 ** (math.floor(math.log10(pct)) - 1) if pct > 0 else 1.0
    return float(f"{math.ceil(pct / step - 1e-9) * step:.2g}")


def direction(change: float, better: str | None) -> str:
    """The word for a change of that sign: better or worse, or higher or lower where a metric has no direction."""
    if better is None:
        return "higher" if change > 0 else "lower"
    return "better" if (change > 0) == (better == "higher") else "worse"


def change(value: float | None, better: str | None, digits: int = 1) -> str:
    """18.0% worse. The direction is a word, never a sign: a signed percentage of a latency reads both ways."""
    if value is None:
        return "changed, size unknown"
    if abs(value) < 0.005:
        return "unchanged"
    return f"{percent(value, digits)} {direction(value, better)}"


def change_with_interval(
    value: float | None, bounds: tuple[float, float] | None, better: str | None
) -> str:
    """18.0% worse (95% interval 17.2% to 18.8%); the words are repeated inside only where a bound has another direction."""
    return f"{change(value, better)} (95% interval {_interval(value, bounds, better)})"


def _interval(value: float | None, bounds: tuple[float, float] | None, better: str | None) -> str:
    if bounds is None:
        return "unknown"
    near, far = sorted(bounds, key=abs)  # the smaller change first, whatever its sign
    # a narrow interval must not collapse into one number
    digits = 2 if abs(far - near) < 0.35 else 1
    if value is not None and (value > 0) == (near > 0) == (far > 0):
        return f"{percent(near, digits)} to {percent(far, digits)}"
    return f"{change(near, better, digits)} to {change(far, better, digits)}"


def sure(probability: float) -> str:
    """A posterior in words, rounded down: a claim never grows by being printed. It is never 100 %."""
    if probability >= 0.999:
        return "more than 99.9% sure"
    floored = math.floor(probability * 1000 + 1e-9) / 10
    return f"{floored:.0f}% sure" if floored == int(floored) else f"{floored:.1f}% sure"


def count(number: int, noun: str) -> str:
    """1 boot, 2 boots."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
