"""A history of numbers: how far its next one may lie from the earlier ones.

What watches branches asks this of the levels of a metric, the latest tip last. Levels are logarithms or shares: differences
of them are effects. Neighbours may be alike because the testbox wanders; that is estimated and allowed for.
Derivation, error rates and power: docs/statistics.md, "Histories".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr

from swingbot.core.thresholds import HISTORY_EFFICIENCY, SPREAD_FLOOR

Array = npt.NDArray[np.float64]

# Huber's proposal 2: squares beyond so many spreads count as that; the expectation of min(z^2, k^2) for Gaussian z.
_CLIP: Final = 1.5
_EXPECTED: Final = 0.77846
# Autocorrelation beyond which a series cannot be told from one that never returns.
_MOST_ALIKE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What the next level should be if nothing changed: `centre` with standard deviation `sd`, known with `df` degrees of freedom."""

    centre: float
    sd: float  # of the next level about `centre`, the uncertainty of the centre included
    df: float
    alike: float  # autocorrelation of neighbours, 0 where they are independent
    median: float  # of all levels

    def p(self, distance: float) -> float:
        """Two-sided P of a next level that lies `distance` from the centre."""
        return float(2.0 * stdtr(self.df, -abs(distance) / self.sd))


def baseline(levels: Array) -> Baseline:
    """What levels (oldest first, at least 3) say of the next: one step of a first-order autoregression about their median."""
    n, median = len(levels), float(np.median(levels))
    away = levels - median
    alike = neighbours_alike(away)
    spread = max(robust_sd(away[1:] - alike * away[:-1]), SPREAD_FLOOR)
    # The median of n independent levels has variance pi s^2 / 2n; of alike ones it moves with them, which (1 - alike) takes out again.
    unsure = math.sqrt(1.0 + math.pi / 2 / n)
    return Baseline(
        centre=median + alike * float(away[-1]),
        sd=spread * unsure,
        df=max(HISTORY_EFFICIENCY * (n - 1), 3.0),
        alike=alike,
        median=median,
    )


def robust_sd(values: Array) -> float:
    """Standard deviation about 0 by Huber's proposal 2, of at least one value; one value in five may be anything."""
    spread = 1.4826 * float(np.median(np.abs(values)))
    if spread <= 0.0:
        return 0.0
    squares = values * values
    for _ in range(12):
        clipped = np.minimum(squares, (_CLIP * spread) ** 2)
        spread = math.sqrt(float(clipped.mean()) / _EXPECTED)
    return spread


def neighbours_alike(away: Array) -> float:
    """Lag-one autocorrelation of distances from the middle, without a few wild ones; never below 0.

    Corrected for its bias, about -(1 + 3 r) / n (Kendall, Biometrika 41, 1954).
    """
    spread = robust_sd(away)
    if spread <= 0.0:
        return 0.0
    clipped = np.clip(away, -2.0 * spread, 2.0 * spread)
    clipped = clipped - clipped.mean()
    squares = float(clipped @ clipped)
    if squares <= 0.0:
        return 0.0
    r = float(clipped[1:] @ clipped[:-1]) / squares
    return min(max(r + (1.0 + 3.0 * r) / len(away), 0.0), _MOST_ALIKE)


def sd_between(levels: Array, back: int) -> float:
    """Standard deviation of what two levels `back` apart differ in, at least, where nothing changed: the largest of closer pairs.

    A straight line is taken off first, so that a creep does not count as noise.
    """
    n = len(levels)
    flat = levels - _slope(levels) * np.arange(n)
    lag, widest = 1, 0.0
    while lag <= max(1, min(back, n // 3)):
        widest = max(widest, robust_sd(flat[lag:] - flat[:-lag]))
        lag *= 2
    return max(widest, SPREAD_FLOOR * math.sqrt(2.0))


def _slope(levels: Array) -> float:
    """A robust slope: the median of the slopes between levels half the history apart."""
    half = len(levels) // 2
    return float(np.median(levels[half:] - levels[: len(levels) - half])) / half if half else 0.0
