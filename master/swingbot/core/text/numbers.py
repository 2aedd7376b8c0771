"""Format numbers: levels, percentages with their direction, probabilities, counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

_LONGEST_NUMBER = 15  # characters; numbers that would be longer are printed with an exponent


def typeset(text: str) -> str:
    """A number as pages print it: a real minus sign, and a space before `%` that never breaks."""
    return text.replace("-", "\u2212").replace(" %", "%").replace("%", "\u00a0%")


def _decimals(value: float, digits: int) -> int | None:
    """Return the number of decimals that shows `digits` significant digits of `value`.

    None if only an exponent keeps the number readable.
    """
    exponent = math.floor(math.log10(abs(value))) if value else 0
    return max(0, digits - 1 - exponent) if -4 <= exponent < 15 else None


def levels(*values: float | None) -> list[str]:
    """Format means for a column: equal decimals, five significant digits of the smallest.

    A percentage printed next to two levels can thus be recomputed from them to 0.01 %.
    """
    return _aligned(values, 5, "missing")


def spreads(*values: float | None) -> list[str]:
    """Format standard deviations for a column, with three significant digits of the smallest.

    A single boot has no standard deviation: "n/a".
    """
    return _aligned(values, 3, "n/a")


def readings(*values: float | None) -> list[str]:
    """Format values for a column that are not compared: three significant digits of the largest,
    and below 1000 at least two decimals, as shares are published.

    Integers stay integers, and a missing value is empty.
    """
    known = [value for value in values if value is not None]
    if all(value == int(value) for value in known):
        return ["" if value is None else f"{value:.0f}" for value in values]
    largest = max(map(abs, known))
    decimals = _decimals(largest, 3)
    if decimals is None:
        return ["" if value is None else f"{value:.2e}" for value in values]
    if largest < 1000:
        decimals = max(2, decimals)
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
    """Format a percentage without its sign: 18.0%, 0.04%."""
    size = abs(value)
    return f"{size:.{max(digits, 2)}f}%" if 0.005 <= size < 0.095 else f"{size:.{digits}f}%"


def nil(value: float | None) -> bool:
    """Return whether a change in percent is none, or too small for `percent` to show."""
    return value is None or abs(value) < 0.005


def signed_percent(value: float) -> str:
    """Format a percentage with its sign: +18.0%, -0.04%; 0.0% has none."""
    return percent(value) if nil(value) else f"{'+' if value > 0 else '-'}{percent(value)}"


def rounded_up(pct: float) -> float:
    """Round up to two significant digits, so that an excluded change stays excluded."""
    step = 10.0 ** (math.floor(math.log10(pct)) - 1) if pct > 0 else 1.0
    return float(f"{math.ceil(pct / step - 1e-9) * step:.2g}")


def two_digits(value: float, sign: Literal["", "+"] = "") -> str:
    """Format with two significant digits: 0.57, 12, 380; an exponent only from 1e6 on.

    With `+`, positive numbers have their sign too.
    """
    return f"{float(f'{value:.2g}'):{sign}g}"


def times_the_spread(ratio: float) -> str:
    """Format a factor of the spread between boots: `3.1 times the spread between boots`."""
    return f"{two_digits(ratio)} times the spread between boots"


def direction(change: float, better: str | None) -> str:
    """Return better or worse, or higher or lower for a metric without a direction."""
    if better is None:
        return "higher" if change > 0 else "lower"
    return "better" if (change > 0) == (better == "higher") else "worse"


def change(value: float | None, better: str | None, digits: int = 1) -> str:
    """Format a change in percent, such as "18.0% worse".

    The direction is a word, never a sign: a signed change of a latency can be read both ways.
    """
    if value is None:
        return "changed, size unknown"
    if nil(value):
        return "unchanged"
    return f"{percent(value, digits)} {direction(value, better)}"


def change_with_interval(
    value: float | None, bounds: tuple[float, float] | None, better: str | None
) -> str:
    """Format a change such as "18.0% worse (95% interval 17.2% to 18.8%)".

    The bounds have words of their own only if their directions differ.
    """
    return f"{change(value, better)} (95% interval {_interval(value, bounds, better)})"


def _interval(value: float | None, bounds: tuple[float, float] | None, better: str | None) -> str:
    if bounds is None:
        return "unknown"
    near, far = sorted(bounds, key=abs)  # smaller change first, regardless of sign
    # A narrow interval must not be printed as a single number.
    digits = 2 if abs(far - near) < 0.35 else 1
    if value is not None and (value > 0) == (near > 0) == (far > 0):
        return f"{percent(near, digits)} to {percent(far, digits)}"
    return f"{change(near, better, digits)} to {change(far, better, digits)}"


def sure(probability: float) -> str:
    """Format a probability, rounded down so that printing never strengthens a claim.

    It is never printed as 100 %.
    """
    if probability >= 0.999:
        return "more than 99.9% sure"
    floored = math.floor(probability * 1000 + 1e-9) / 10
    return f"{floored:.0f}% sure" if floored == int(floored) else f"{floored:.1f}% sure"


def thousands(value: float) -> str:
    """Format a whole number with its thousands apart: 12 345."""
    return f"{value:,.0f}".replace(",", " ")


def count(number: int, noun: str) -> str:
    """Format a count with its noun: 1 boot, 2 boots."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_UNITS: Final = (("d", 86400, "h", 3600), ("h", 3600, "min", 60), ("min", 60, "s", 1))


def short(value: float | None) -> str:
    """Format a value for a line of text: 12.35, 1234.5; "-" if there is none."""
    if value is None:
        return "-"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.4g}"


def duration(seconds: float | None, none: str = "unknown") -> str:
    """Format a duration with two units at most: 0.25 s, 1 min 15 s, 2 h 5 min, 1 d 1 h."""
    if seconds is None:
        return none
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    total = round(seconds)
    for unit, length, smaller, part in _UNITS:
        if total >= length:
            rest = total % length // part
            return f"{total // length} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{total} s"
