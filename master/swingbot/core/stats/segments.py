"""Cut a history into many levels at once: steps that hide each other from a search one by one."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from swingbot.core.stats.history import Array, robust_sd
from swingbot.core.thresholds import SPREAD_FLOOR

MOST_POINTS: Final = 3000  # the search takes n^2 steps
_MOST_CUTS: Final = 40
# ln n for a cut: smaller takes longer
_PENALTY: Final = 3.0


def many_cuts(values: Array, fewest: int) -> list[int]:
    """Return the cuts with the least squares about the levels and `_PENALTY ln n` for each cut.

    A level has at least `fewest` points. Squares are in units of the spread of neighbours, which
    steps do not widen. With more than `_MOST_CUTS` the penalty doubles (Jackson et al., IEEE Signal
    Processing Letters 12, 2005).
    """
    n = len(values)
    if n < 2 * fewest or n > MOST_POINTS:
        return []
    sd = max(robust_sd(np.diff(values)) / math.sqrt(2.0), SPREAD_FLOOR)
    scaled = (values - values.mean()) / sd
    sums = np.concatenate([[0.0], np.cumsum(scaled)])
    penalty = _PENALTY * math.log(n)
    while True:
        cuts = _optimal(sums, fewest, penalty)
        if len(cuts) <= _MOST_CUTS:
            return cuts
        penalty *= 2.0


def _optimal(sums: Array, fewest: int, penalty: float) -> list[int]:
    """Return the best cuts, by the best cuts of all shorter histories."""
    n = len(sums) - 1
    best, begins = np.full(n + 1, np.inf), np.zeros(n + 1, dtype=int)
    best[0] = -penalty
    places = np.arange(n + 1, dtype=float)
    for end in range(fewest, n + 1):
        last = end - fewest + 1
        costs = best[:last] - (sums[end] - sums[:last]) ** 2 / (end - places[:last])
        begin = int(np.argmin(costs))
        best[end], begins[end] = costs[begin] + penalty, begin
    cuts, end = [], n
    while (end := int(begins[end])) > 0:
        cuts.append(end)
    return cuts[::-1]
