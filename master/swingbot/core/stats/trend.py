"""Do the boots of a comparison drift in the order they ran? Kendall's test, exact, so that few boots raise no more false alarms than many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from scipy.special import ndtr

ENUMERATED = 2000  # pairs of values in all that are counted by enumeration; beyond it the normal form is as good
EXACT = 30  # pairs counted by enumeration up to this many boots a side; beyond it the normal form is right to the third digit


def trend_p(series: Sequence[Sequence[float]]) -> float:
    """Probability that boots without a trend look like one at least this much: each series alone, and all together.

    Two-sided, already multiplied by the number of looks. Whatever the distribution of the values is; ties make it larger, never smaller.
    """
    looks = [[values] for values in series if len(values) > 2]
    if len(looks) > 1:
        looks.append([values for (values,) in looks])
    return min([1.0, *(len(looks) * _p(look) for look in looks)])


def drift(values: Sequence[float]) -> float:
    """How far a straight line through the values (at 0, 1, 2, ...) goes from the first to the last."""
    n = len(values)
    centre = (n - 1) / 2.0
    slope = math.fsum((i - centre) * v for i, v in enumerate(values)) * 12.0 / (n * (n * n - 1.0))
    return slope * (n - 1)


def together_p(series: Sequence[Sequence[float]]) -> float:
    """As `trend_p`, of all series taken together alone: a habit that each of many short series shows a little of. 1 if none has three values."""
    long_enough = [values for values in series if len(values) > 2]
    return _p(long_enough) if long_enough else 1.0


def _p(series: Sequence[Sequence[float]]) -> float:
    score = abs(sum(concordance(values) for values in series))
    sizes = tuple(sorted(len(values) for values in series))
    if max(sizes) <= EXACT and sum(n * (n - 1) // 2 for n in sizes) <= ENUMERATED:
        chance = _chances(sizes)
        pairs = len(chance) - 1  # inversions go from 0 to this; S = pairs - 2 * inversions
        return min(
            1.0,
            math.fsum(
                c for inversions, c in enumerate(chance) if abs(pairs - 2 * inversions) >= score
            ),
        )
    variance = sum(n * (n - 1) * (2 * n + 5) / 18.0 for n in sizes)
    return float(2.0 * ndtr(-max(score - 1, 0) / math.sqrt(variance)))


def concordance(values: Sequence[float]) -> int:
    """Kendall's S: pairs that rise less pairs that fall. By merge sort: n log n."""

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
    """Of each number of inversions when every order is as likely: a sum of independent numbers, the i-th uniform on 0 .. i - 1."""
    chance = [1.0]
    for n in sizes:
        for i in range(2, n + 1):
            chance = _spread(chance, i)
    return tuple(chance)


def _spread(chance: Sequence[float], i: int) -> list[float]:
    """The distribution of a sum with one more number, uniform on 0 .. i - 1."""
    out, window = [], 0.0
    for at in range(len(chance) + i - 1):
        window += chance[at] if at < len(chance) else 0.0
        window -= chance[at - i] if at >= i else 0.0
        out.append(max(window, 0.0) / i)
    return out
