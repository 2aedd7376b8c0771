"""A level that began to drift and still does at the last point: a ramp, and not a staircase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import ndtr

from swingbot.core.stats.history import Array
from swingbot.core.stats.steps import LevelStep, find_steps, likely
from swingbot.core.stats.wander import WALKS, misfit
from swingbot.core.thresholds import CREEP_MARGIN, HISTORY_TREND_P, STEP_FEWEST

_FEWEST: Final = 8  # points of a ramp, and of the level before it
_MOST: Final = 400  # points that are searched


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRamp:
    """Where a line to the last point begins. Effects are differences of logarithms or shares."""

    begin: int  # the first point of the level before it
    at: int  # the last point of that level
    first: int  # with 95 % the line begins between these two points (inclusive)
    last: int
    before: float
    effect: float  # by the last point
    p: float

    def line(self, n: int) -> Array:
        """Return how far each of `n` points is from the level before the line."""
        share: Array = np.maximum(np.arange(n) - self.at, 0) / (n - 1 - self.at)
        return self.effect * share


def ramp_at_end(
    values: Array, steps: Sequence[LevelStep], candidate: int | None, line: Array | None
) -> LevelRamp | None:
    """Return the ramp that explains the points better than the last steps of its direction do, or
    than a step at `candidate`, or than `line`, a creep through all points; None if there is none.

    Both are judged by Schwarz's criterion in a level that may wander (`wander.misfit`).
    """
    best, least = None, math.inf
    cuts = [step.at for step in steps]
    against = without_ramp(values, cuts, candidate, line)
    for kept in range(len(cuts), -1, -1):
        if kept < len(cuts) and steps[kept].effect * steps[-1].effect < 0.0:
            break
        begin = max(cuts[kept - 1] if kept else 0, len(values) - _MOST)
        ramp = _best(values, begin)
        if ramp is None or (kept < len(cuts) and ramp.effect * steps[-1].effect < 0.0):
            continue
        found, wander = misfit(values - ramp.line(len(values)), cuts[:kept])
        found += 2.0 * math.log(len(values)) + CREEP_MARGIN
        still = wander[0] < WALKS and ramp.p < HISTORY_TREND_P
        if still and found < min(against, least):
            best, least = ramp, found
    return best


def without_ramp(
    values: Array, cuts: Sequence[int], candidate: int | None, line: Array | None
) -> float:
    """Return the criterion of what explains the points without a ramp."""
    against = misfit(values if line is None else values - line, cuts)[0]
    against += 0.0 if line is None else math.log(len(values))
    if candidate is not None:
        against = min(against, misfit(values, [*cuts, candidate])[0])
    return against


def ramp_beside_steps(values: Array, against: float) -> tuple[LevelRamp, list[int]] | None:
    """Return a ramp and the steps before it that hide each other from searches one by one; None if
    the criterion does not prefer them to `against`, or to a level that wanders.
    """
    n = len(values)
    first = max(n - _MOST, 0)
    at = _step_before_ramp(values[first:])
    ramp, cuts = _best(values, first + at) if at else None, list[int]()
    for _ in range(2):
        if ramp is None:
            return None
        cuts = [step.at for step in find_steps(values - ramp.line(n))]
        if not cuts or cuts[-1] > ramp.at:
            return None
        ramp = _best(values, cuts[-1])
    if ramp is None or ramp.p >= HISTORY_TREND_P:
        return None
    found, wander = misfit(values - ramp.line(n), cuts)
    found += 4.0 * math.log(n) + CREEP_MARGIN  # both places were chosen, of n^2
    return (ramp, cuts) if wander[0] < WALKS and found < against else None


def _step_before_ramp(values: Array) -> int:
    """Return where the step begins that leaves the least squares beside a ramp after it; 0 for
    none."""
    n = len(values)
    places = np.arange(2 * _FEWEST, n - _FEWEST)
    if not len(places):
        return 0
    rises = np.maximum(np.arange(n) - places[:, None], 0).astype(float)
    rises -= rises.mean(axis=1, keepdims=True)
    rises /= np.sqrt((rises**2).sum(axis=1, keepdims=True))
    centred = values - values.mean()
    left = centred - (rises @ centred)[:, None] * rises
    steps = np.arange(1, n)
    own = steps * (n - steps) / n - np.cumsum(rises, axis=1)[:, :-1] ** 2
    gains = np.cumsum(left, axis=1)[:, :-1] ** 2 / np.maximum(own, 1e-9)
    gains[(steps < STEP_FEWEST) | (steps > places[:, None] - _FEWEST + 1) | (own < 1e-3)] = 0.0
    squares = (left**2).sum(axis=1, keepdims=True) - gains
    return int(steps[np.unravel_index(int(np.argmin(squares)), squares.shape)[1]])


def _best(values: Array, begin: int) -> LevelRamp | None:
    """Return the level and line with the least squares from point `begin` on."""
    part = values[begin:]
    n = len(part)
    if n < 2 * _FEWEST:
        return None
    places = np.arange(_FEWEST - 1, n - _FEWEST)
    rises = np.maximum(np.arange(n) - places[:, None], 0).astype(float)
    centred = rises - rises.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=1)
    slopes = centred @ (part - part.mean()) / squares
    left = float(((part - part.mean()) ** 2).sum()) - slopes**2 * squares
    n_best = int(np.argmin(left))
    variance = max(float(left[n_best]) / (n - 3), 1e-12)
    near = begin + places[likely(-left / variance / 2.0)]
    slope, at = float(slopes[n_best]), begin + int(places[n_best])
    z = abs(slope) * math.sqrt(float(squares[n_best]) / variance)
    return LevelRamp(
        begin=begin,
        at=at,
        first=int(near.min()),
        last=int(near.max()),
        before=float(part.mean() - slope * rises[n_best].mean()),
        effect=slope * (len(values) - 1 - at),
        p=min(1.0, 2.0 * float(ndtr(-z)) * 3.0 * math.log(n)),
    )
