"""Range in which the next number of a history is expected.

The watch on branches applies this to the levels of a metric, the latest tip last. Levels are
logarithms or shares, so that their differences are effects. Adjacent levels may be correlated
because the testbox wanders. This is estimated and taken into account.
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

# Huber's proposal 2 caps squares at this many spreads; and E min(z^2, k^2) for Gaussian z.
_CLIP: Final = 1.5
_EXPECTED: Final = 0.77846
# Share of deviations next to 0 at which values have a bound (0.1 for a Gaussian), and the quantile
# of the deviations that is then noise.
_BOUND_SHARE: Final = 0.3
_TOLERATED: Final = 0.95
# A series with a higher autocorrelation cannot be distinguished from a random walk.
_MOST_ALIKE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """Expectation of the next level if nothing changed.

    It is `centre`, with standard deviation `sd` known with `df` degrees of freedom.
    """

    centre: float
    sd: float  # of the next level about `centre`, including the uncertainty of the centre
    df: float
    alike: float  # autocorrelation of adjacent levels, 0 if they are independent
    median: float  # of all levels

    def p(self, distance: float) -> float:
        """Return the two-sided P of a next level at `distance` from the centre."""
        return float(2.0 * stdtr(self.df, -abs(distance) / self.sd))


def baseline(levels: Array) -> Baseline:
    """Predict the next level from at least 3 levels, oldest first.

    The model is a first-order autoregression about the median.
    """
    n, median = len(levels), float(np.median(levels))
    away = levels - median
    alike = neighbours_alike(away)
    spread = max(robust_sd(away[1:] - alike * away[:-1]), SPREAD_FLOOR)
    # The median of n independent levels has variance pi s^2 / 2n. The median of correlated levels
    # moves with them, which (1 - alike) corrects.
    unsure = math.sqrt(1.0 + math.pi / 2 / n)
    return Baseline(
        centre=median + alike * float(away[-1]),
        sd=spread * unsure,
        df=max(HISTORY_EFFICIENCY * (n - 1), 3.0),
        alike=alike,
        median=median,
    )


def robust_sd(values: Array) -> float:
    """Return the standard deviation about 0 by Huber's proposal 2.

    Needs at least one value, and tolerates one arbitrary value in five. Where many are next to 0,
    as at a bound that many reach, the others are noise and not wild: one in twenty is tolerated.
    """
    away = np.sort(np.abs(values))
    n = len(away)
    spread, near = 1.4826 * _at(away, 0.5), 0.1 * _at(away, 0.75)
    bounded = int(away.searchsorted(near, "right")) > _BOUND_SHARE * n
    least = _at(away, _TOLERATED) if bounded else 0.0
    if max(spread, least) <= 0.0:
        return 0.0
    sums = np.cumsum(away * away)
    for _ in range(12):
        cap = max(_CLIP * spread, least)
        within = int(away.searchsorted(cap, "right"))
        squares = (float(sums[within - 1]) if within else 0.0) + (n - within) * cap * cap
        before, spread = spread, math.sqrt(squares / n / _EXPECTED)
        if spread == before:
            break
    return spread


def middle(values: Array) -> float:
    """Return the median of at least one value. Faster than NumPy's where there are few."""
    return _at(np.sort(values), 0.5)


def _at(ordered: Array, share: float) -> float:
    """Return a quantile of sorted values, between two of them by a straight line."""
    place = share * (len(ordered) - 1)
    low = int(place)
    if low == place:
        return float(ordered[low])
    a, b = float(ordered[low]), float(ordered[low + 1])
    return (a + b) / 2.0 if share == 0.5 else a + (b - a) * (place - low)


def neighbours_alike(away: Array) -> float:
    """Return the lag-one autocorrelation of residuals, without outliers; at least 0.

    Corrected for its bias of about -(1 + 3 r) / n (Kendall, Biometrika 41, 1954).
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
    """Return the standard deviation of the difference of two levels `back` apart without a change.

    This is the largest over pairs at most that far apart. A straight line is subtracted first, so
    that a creep does not count as noise.
    """
    n = len(levels)
    flat = levels - _slope(levels) * np.arange(n)
    lag, widest = 1, 0.0
    while lag <= max(1, min(back, n // 3)):
        widest = max(widest, robust_sd(flat[lag:] - flat[:-lag]))
        lag *= 2
    return max(widest, SPREAD_FLOOR * math.sqrt(2.0))


def _slope(levels: Array) -> float:
    """Return a robust slope: the median slope between levels half the history apart."""
    half = len(levels) // 2
    return float(np.median(levels[half:] - levels[: len(levels) - half])) / half if half else 0.0
