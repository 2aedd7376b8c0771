"""How much a level wanders between steps, and which steps that does not explain.

The model is a local level: each point is the level and independent noise, and the level is a random
walk, or is drawn back to its mean. Its best prediction is a moving average, which goes a share of
the way to each point (Muth, JASA 55, 1960): 0 is a level that stands still, 1 a random walk without
noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from swingbot.core.stats.history import Array, middle, robust_sd
from swingbot.core.thresholds import SPREAD_FLOOR

_STILL: Final = (0.0, 1.0)
# Shares of the way to each point, and what remains of the level from point to point
_WANDERS: Final = (
    *((gain, 1.0) for gain in (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)),
    *((gain, 0.95) for gain in (0.12, 0.25, 0.5, 1.0)),
    *((gain, 0.85) for gain in (0.25, 0.5, 1.0)),
)
# Points of the criterion that a level drawn back to its mean costs for each level: between steps
# every random walk seems to be drawn back (Perron, Econometrica 57, 1989). Smaller: a random walk
# has steps; larger: a step in a level that wanders fast is missed.
_DRAWN_BACK: Final = 10.0
_BY_CHANCE: Final = 4.0
# Share of the way from which on a level looks like a walk. Smaller: no ramps where a level wanders.
WALKS: Final = 0.5
# Points of the criterion that a step must be worth beyond its parameters. Smaller: a level that
# wanders slowly below its noise is cut into steps; larger: steps of 1.5 spreads are missed.
_STEP_WORTH: Final = 2.0
# Squares count up to this many spreads, and distances beyond it. Larger: a wild point is a step.
_LINEAR: Final = 2.5


Wander = tuple[float, float]


def misfit(values: Array, cuts: Sequence[int]) -> tuple[float, Wander]:
    """Return Schwarz's criterion of steps at `cuts` in a level that wanders, and how it wanders.

    Smaller is better. A step counts as two parameters, its place and its size, a level that wanders
    as one.
    """
    away, costs = _about(values, cuts), []
    for wander in (_STILL, *_WANDERS):
        back = _DRAWN_BACK * (1 + len(cuts)) if wander[1] < 1.0 else 0.0
        costs.append((_cost(away, len(cuts), wander) + back, wander))
    return min(costs)


def walks(values: Array) -> bool:
    """Return whether the level is a random walk, in which no step can be told from its wandering.

    One that is drawn back may fit better by chance, by less than `_BY_CHANCE`.
    """
    away = _about(values, [])
    walk, gain = min((_cost(away, 0, wander), wander[0]) for wander in _WANDERS if wander[1] == 1.0)
    others = [_STILL, *(wander for wander in _WANDERS if wander[1] < 1.0)]
    return gain >= WALKS and walk < min(_cost(away, 0, each) for each in others) + _BY_CHANCE


def _about(values: Array, cuts: Sequence[int]) -> Array:
    return np.concatenate([part - middle(part) for part in np.split(values, list(cuts))])


def _cost(away: Array, cuts: int, wander: Wander) -> float:
    n, errors = len(away), away if wander == _STILL else away - _predicted(away, *wander)
    sd = max(robust_sd(errors), SPREAD_FLOOR)
    far = np.abs(errors) / sd
    squares = np.where(far < _LINEAR, far * far, _LINEAR * (2.0 * far - _LINEAR))
    parameters = 2 * cuts + (wander != _STILL)
    return float(squares.sum()) + 2.0 * n * math.log(sd) + parameters * math.log(n)


def _predicted(away: Array, gain: float, remains: float) -> Array:
    """Return what the points before each predict; 0 for the first.

    The level after a point is `gain` of it and `kept` of the level before; each pass adds twice as
    many points before.
    """
    levels, kept, back = gain * away, remains * (1.0 - gain), 1
    while back < len(away) and kept > 1e-17:
        levels[back:] += kept * levels[:-back]
        kept, back = kept * kept, 2 * back
    return np.concatenate([[0.0], remains * levels[:-1]])


def not_wandering(values: Array, cuts: Sequence[int]) -> list[int]:
    """Return the cuts that remain steps where the level wanders between them.

    Each must explain `_STEP_WORTH` more than any wandering without it does, and all of them
    together as much more for each: steps close together leave nothing that wanders between them.
    """
    kept, without_any = list(cuts), misfit(values, [])[0]
    while kept:
        least = misfit(values, kept)[0] + _STEP_WORTH
        if without_any < least + _STEP_WORTH * (len(kept) - 1):
            return []
        without = [(misfit(values, kept[:n] + kept[n + 1 :])[0], n) for n in range(len(kept))]
        fit, weakest = min(without)
        if fit >= least:
            break
        del kept[weakest]
    return kept
