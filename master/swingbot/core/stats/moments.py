"""Means and spreads that neither overflow nor lose digits."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.special import stdtrit


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


def within(boots: Sequence[Sequence[float]]) -> float | None:
    """Standard deviation of one run around the mean of its boot, pooled; None where no boot has two runs."""
    parts = [(*squares(runs), len(runs) - 1) for runs in boots if len(runs) > 1]
    if not parts:
        return None
    unit = max(u for _, u, _ in parts)
    return unit * math.sqrt(
        math.fsum(total * (u / unit) ** 2 for total, u, _ in parts) / sum(df for _, _, df in parts)
    )


def t_quantile(p: float, df: float) -> float:
    return float(stdtrit(df, p))
