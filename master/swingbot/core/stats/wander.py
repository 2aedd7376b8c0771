"""How much a level wanders between steps, and which steps that does not explain.

The model is a local level: each point is the level and independent noise, and the level is a random
walk. Its best prediction is a moving average, which goes `gain` of the way to each point (Muth,
JASA 55, 1960): a gain of 0 is a level that stands still, 1 a random walk without noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.signal import lfilter

from swingbot.core.stats.history import Array, robust_sd
from swingbot.core.thresholds import SPREAD_FLOOR

_GAINS: Final = (0.0, 0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
# Squares count up to this many spreads, and distances beyond it. Larger: a wild point is a step.
_LINEAR: Final = 2.5


def misfit(values: Array, cuts: Sequence[int], gain: float | None = None) -> tuple[float, float]:
    """Return Schwarz's criterion of steps at `cuts` in a level that wanders, and its gain.

    Smaller is better. A step counts as two parameters, its place and its size, a gain above 0 as
    one. With `gain` only this one is tried.
    """
    parts = np.split(values, list(cuts))
    away = np.concatenate([part - np.median(part) for part in parts])
    steps = 2.0 * len(cuts) * math.log(len(values))
    tried = _GAINS if gain is None else (gain,)
    costs = [(_cost(away, each) + steps, each) for each in tried]
    return min(costs)


def _cost(away: Array, gain: float) -> float:
    errors = away - _predicted(away, gain) if gain > 0.0 else away
    sd = max(robust_sd(errors), SPREAD_FLOOR)
    far = np.abs(errors) / sd
    squares = np.where(far < _LINEAR, far * far, _LINEAR * (2.0 * far - _LINEAR))
    n = len(away)
    return float(squares.sum()) + 2.0 * n * math.log(sd) + (math.log(n) if gain > 0.0 else 0.0)


def _predicted(away: Array, gain: float) -> Array:
    """Return what the points before each predict; 0 for the first."""
    levels = lfilter([gain], [1.0, gain - 1.0], away)
    return np.concatenate([[0.0], np.asarray(levels)[:-1]])


def not_wandering(values: Array, cuts: Sequence[int]) -> list[int]:
    """Return the cuts that remain steps where the level wanders between them.

    The gain is that of the stretches between the cuts.
    """
    kept = list(cuts)
    while kept:
        whole, gain = misfit(values, kept)
        if gain <= 0.0:
            break
        without = [(misfit(values, kept[:n] + kept[n + 1 :], gain)[0], n) for n in range(len(kept))]
        least, weakest = min(without)
        if least >= whole:
            break
        del kept[weakest]
    return kept
