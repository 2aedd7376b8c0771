"""Detect a drift of boots in the order they ran.

Kendall's test, exact, so that few boots raise no more false alarms than many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from scipy.special import ndtr

from swingbot.core.stats.moments import mean, stddev, welch_p

ENUMERATED = 2000  # pairs of values to enumerate at most; beyond it the normal form is as good
EXACT = 30  # boots per side to enumerate at most; beyond it the normal form is right to 3 digits


def trend_p(series: Sequence[Sequence[float]]) -> float:
    """Return P that boots without a trend look like one: each series alone, and all together.

    Two-sided and multiplied by the number of tests. Valid for any distribution; ties make it
    larger, never smaller.
    """
    looks = [[values] for values in series if len(values) > 2]
    if len(looks) > 1:
        looks.append([values for (values,) in looks])
    return min([1.0, *(len(looks) * _p(look) for look in looks)])


def drift(values: Sequence[float]) -> float:
    """Return the rise of a straight line through the values, from the first to the last."""
    n = len(values)
    centre = (n - 1) / 2.0
    slope = math.fsum((i - centre) * v for i, v in enumerate(values)) * 12.0 / (n * (n * n - 1.0))
    return slope * (n - 1)


def drifts_differ_p(base: Sequence[Sequence[float]], head: Sequence[Sequence[float]]) -> float:
    """Return the two-sided P of a difference between the sides' drifts if there is none (Welch).

    A drift is that of a line through a series. Its spread is that between boots, or that of the
    runs about their lines if larger. 1 if a side has no series.
    """
    sides = [[series for series in side if len(series) > 2] for side in (base, head)]
    if not all(sides):
        return 1.0
    parts = [_drift_variance(side) for side in sides]
    difference = mean([drift(s) for s in sides[1]]) - mean([drift(s) for s in sides[0]])
    if not any(variance for variance, _ in parts):
        return 0.0 if difference else 1.0
    return welch_p(difference, parts)


def _drift_variance(series: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the variance of the mean drift of the series, and its degrees of freedom."""
    n = len(series)
    df = float(sum(len(values) - 2 for values in series))
    about = math.fsum(_squares_about_line(values) for values in series) / df
    own = math.fsum(about * 12.0 * (m - 1) / (m * (m + 1)) for m in map(len, series)) / n**2
    between = stddev([drift(values) for values in series]) ** 2 / n if n > 1 else 0.0
    return (between, float(n - 1)) if between > own else (own, df)


def _squares_about_line(values: Sequence[float]) -> float:
    n, far, middle = len(values), drift(values), mean(values)
    return math.fsum((v - middle - far * (i / (n - 1) - 0.5)) ** 2 for i, v in enumerate(values))


def together_p(series: Sequence[Sequence[float]]) -> float:
    """Return the same as `trend_p` for all series taken together.

    This detects an effect that many short series show weakly. 1 if no series has three values.
    """
    long_enough = [values for values in series if len(values) > 2]
    return _p(long_enough) if long_enough else 1.0


def _p(series: Sequence[Sequence[float]]) -> float:
    score = abs(sum(concordance(values) for values in series))
    sizes = tuple(sorted(len(values) for values in series))
    if max(sizes) <= EXACT and sum(n * (n - 1) // 2 for n in sizes) <= ENUMERATED:
        chance = _chances(sizes)
        pairs = len(chance) - 1  # maximum number of inversions; S = pairs - 2 * inversions
        return min(
            1.0,
            math.fsum(
                c for inversions, c in enumerate(chance) if abs(pairs - 2 * inversions) >= score
            ),
        )
    variance = sum(n * (n - 1) * (2 * n + 5) / 18.0 for n in sizes)
    return float(2.0 * ndtr(-max(score - 1, 0) / math.sqrt(variance)))


def concordance(values: Sequence[float]) -> int:
    """Return Kendall's S: rising pairs less falling pairs. By merge sort, O(n log n)."""

    def sort(part: list[float]) -> tuple[list[float], int]:
        if len(part) < 2:
            return part, 0
        (left, a), (right, b) = sort(part[: len(part) // 2]), sort(part[len(part) // 2 :])
        score, below, upto = a + b, 0, 0
        for v in right:
            while below < len(left) and left[below] < v:
                below += 1
            while upto < len(left) and left[upto] <= v:
                upto += 1
            score += below - (len(left) - upto)
        return sorted(left + right), score

    return sort(list(values))[1]


@lru_cache(maxsize=64)
def _chances(sizes: tuple[int, ...]) -> tuple[float, ...]:
    """Return P of each number of inversions if all orders are equally likely.

    The number is a sum of independent numbers, the i-th uniform on 0 .. i - 1.
    """
    chance = [1.0]
    for n in sizes:
        for i in range(2, n + 1):
            chance = _spread(chance, i)
    return tuple(chance)


def _spread(chance: Sequence[float], i: int) -> list[float]:
    """Return the distribution of a sum with one more number, uniform on 0 .. i - 1."""
    out, window = [], 0.0
    for at in range(len(chance) + i - 1):
        window += chance[at] if at < len(chance) else 0.0
        window -= chance[at - i] if at >= i else 0.0
        out.append(max(window, 0.0) / i)
    return out
