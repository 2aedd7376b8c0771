"""Means and spreads that neither overflow nor lose digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import stdtr, stdtrit


def mean(values: Sequence[float]) -> float:
    """Of at least one value, each below 1e300."""
    return math.fsum(values) / len(values)


def stddev(values: Sequence[float]) -> float:
    """With n - 1; of at least two values."""
    total, unit = squares(values)
    return math.sqrt(total / (len(values) - 1)) * unit


def squares(values: Sequence[float]) -> tuple[float, float]:
    """(sum of squared deviations from the mean, unit): the sum is in units of `unit` squared, so that 1e200 can be squared."""
    middle = mean(values)
    off = [v - middle for v in values]
    unit = max(map(abs, off)) or 1.0
    return math.fsum((v / unit) ** 2 for v in off), unit


def within(groups: Sequence[Sequence[float]]) -> float | None:
    """Standard deviation of a value about the mean of its group (a run in its boot), pooled; None where no group has two."""
    return pooled([(*squares(runs), len(runs) - 1) for runs in groups if len(runs) > 1])


def pooled(parts: Sequence[tuple[float, float, int]]) -> float | None:
    """Standard deviation of (sum of squares, their unit, degrees of freedom) taken together; None without any."""
    if not parts:
        return None
    unit = max(u for _, u, _ in parts) or 1.0
    return unit * math.sqrt(
        math.fsum(total * (u / unit) ** 2 for total, u, _ in parts) / sum(df for _, _, df in parts)
    )


def welch_p(difference: float, parts: Sequence[tuple[float, float]]) -> float:
    """Two-sided P of so large a difference of means whose (variance, degrees of freedom) are `parts`, not all 0, if there were none.

    Welch, Biometrika 34, 1947.
    """
    total = math.fsum(variance for variance, _ in parts)
    df = total**2 / math.fsum(variance**2 / own for variance, own in parts)
    return 2.0 * float(stdtr(df, -abs(difference) / math.sqrt(total)))


def t_quantile(p: float, df: float) -> float:
    return float(stdtrit(df, p))
