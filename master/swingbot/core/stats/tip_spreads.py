"""Detect from tip to tip of a branch that the spread between boots changed.

Formulas: docs/statistics.md, "From a swing to a bisection". Only the order of the spreads counts
(Mann & Whitney, Ann. Math. Stat. 18, 1947), so the error rate is exact for any shape of noise, as
long as tips are independent and their spreads alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri, ndtr

from swingbot.core.stats.moments import mean
from swingbot.core.stats.rank_steps import ranks
from swingbot.core.stats.robust import median
from swingbot.core.thresholds import (
    HISTORY_TREND_P,
    SCREEN_FEWEST_TIPS,
    SPREAD_FLOOR,
    SPREAD_TIPS,
    SPREAD_TIPS_P,
    SPREAD_TIPS_TIMES,
)

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TipSpread:
    """The relative spread between the boots of a tip, with its degrees of freedom."""

    sd: float
    df: int

    @property
    def typical(self) -> float:
        """The spread that is exceeded in half of all cases, whatever the degrees of freedom."""
        return self.sd / math.sqrt(float(chdtri(self.df, 0.5)) / self.df)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadChange:
    """A change of spread at point `at`, by a factor of `times`."""

    at: int
    times: float
    p: float


def tip_spread(mean: float | None, stddev: float | None, boots: int) -> TipSpread | None:
    """Return the spread of `boots` boots; None if it is not known or has no relative size."""
    if mean is None or stddev is None or boots < 2 or not abs(mean) > 0.0:
        return None
    return TipSpread(sd=stddev / abs(mean), df=boots - 1)


def latest_change(tips: Sequence[TipSpread]) -> SpreadChange | None:
    """Return the change that the last tips show against those before them; None if there is none.

    `tips` are oldest first. Compares the last 4, 6, 8, ... tips (`SPREAD_TIPS`); each of these
    comparisons has its share of `SPREAD_TIPS_P`, so that equal tips raise an alarm with at most
    this probability. `at` is the likeliest place of the change.
    """
    values = np.array([tip.typical for tip in tips])
    n, best, wider = len(values), 1.0, True
    for late in SPREAD_TIPS:
        if n - late < SCREEN_FEWEST_TIPS:
            break
        p = _p(values, n - late)
        if p < best:
            best, wider = p, _z(values, n - late) > 0.0
    p = min(1.0, best * len(SPREAD_TIPS))
    if p >= SPREAD_TIPS_P:
        return None
    sign = 1.0 if wider else -1.0
    places = range(SCREEN_FEWEST_TIPS, n - min(SPREAD_TIPS) + 1)
    return _if_large(values, max(places, key=lambda at: sign * _z(values, at)), p)


def change_within(tips: Sequence[TipSpread]) -> SpreadChange | None:
    """Return the most significant change of the spread anywhere in a history, oldest first."""
    values = np.array([tip.typical for tip in tips])
    n, least = len(values), SCREEN_FEWEST_TIPS
    if n < 2 * least:
        return None
    places = np.arange(least, n - least + 1)
    late = np.cumsum(ranks(values)[::-1])[::-1][places]  # sums of the ranks of the later points
    u = late - (n - places) * (n - places + 1) / 2.0
    z = (u - places * (n - places) / 2.0) / np.sqrt(places * (n - places) * (n + 1) / 12.0)
    at = least + int(np.argmax(np.abs(z)))
    p = min(1.0, 2.0 * float(ndtr(-abs(_z(values, at)))) * 3.0 * math.log(n))
    return _if_large(values, at, p) if p < HISTORY_TREND_P else None


def _if_large(values: Array, at: int, p: float) -> SpreadChange | None:
    times = _middle(values[at:]) / _middle(values[:at])
    large = max(times, 1.0 / times) >= SPREAD_TIPS_TIMES
    return SpreadChange(at=at, times=times, p=p) if large else None


def _middle(values: Array) -> float:
    """Return the median spread; the mean where half of the tips or more have none, because a coarse
    scale hides it."""
    spreads = values.tolist()
    return max(median(spreads) or mean(spreads), SPREAD_FLOOR)


def _u(values: Array, at: int) -> float:
    """Return the pairs of a later and an earlier point in which the later one is larger; ties count
    half."""
    early, late = np.sort(values[:at]), values[at:]
    below = np.searchsorted(early, late, "left") + np.searchsorted(early, late, "right")
    return float(below.sum()) / 2.0


def _z(values: Array, at: int) -> float:
    """Return U in standard deviations from its mean."""
    n, m = at, len(values) - at
    return (_u(values, at) - n * m / 2.0) / math.sqrt(n * m * (n + m + 1) / 12.0)


def _p(values: Array, at: int) -> float:
    """Return the exact two-sided P of U; ties make it too large."""
    n, m = at, len(values) - at
    u = _u(values, at)
    return min(1.0, 2.0 * float(_tail(n, m)[math.floor(max(u, n * m - u))]))


@lru_cache(maxsize=1024)
def _tail(n: int, m: int) -> Array:
    """Return P(U >= u) for u = 0 ... n m.

    U is distributed as the coefficients of the Gaussian binomial (n + m over m), of whole numbers
    without rounding.
    """
    counts = [1] + [0] * (n * m)
    for i in range(1, m + 1):
        for u in range(n * m, n + i - 1, -1):
            counts[u] -= counts[u - n - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    above, total = 0, math.comb(n + m, m)
    tail = np.empty(n * m + 1)
    for u in range(n * m, -1, -1):
        above += counts[u]
        tail[u] = above / total
    return tail
