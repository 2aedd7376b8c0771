"""Points that are off in a row before the level comes back: too few for a level of their own.

A change that was reverted after three tips looks the same as a disturbance of the testbox, so that
it is neither a step nor passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from scipy.special import stdtr

from swingbot.core.stats.history import Array, middle
from swingbot.core.stats.steps import noise_of_mean, noise_without_wild
from swingbot.core.thresholds import HISTORY_TREND_P, STEP_FEWEST_INSIDE, STEP_P

_LONG: Final = STEP_FEWEST_INSIDE - 1  # points; fewer are wild points, more are a level
# Spreads by which the points may differ. Larger: wild points in a row are an excursion.
_ONE_LEVEL: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelExcursion:
    """Points `first` to `last` (inclusive). Effects are differences of logarithms or shares."""

    first: int
    last: int
    before: float  # the level around them
    effect: float
    p: float  # of such an excursion anywhere, if there is none


def excursions(values: Array, cuts: Sequence[int], sd: float) -> list[LevelExcursion]:
    """Return the excursions of `_LONG` points between the cuts, in order; `sd` is the spread of a
    point about its level."""
    found: list[LevelExcursion] = []
    edges = [0, *cuts, len(values)]
    for begin, end in pairwise(edges):
        level = middle(values[begin:end])
        away = values - level
        for first in range(begin + STEP_FEWEST_INSIDE, end - _LONG - STEP_FEWEST_INSIDE + 1):
            off = _excursion(away[begin:end], first - begin, sd)
            if off is None or off[1] >= HISTORY_TREND_P:
                continue
            each = LevelExcursion(
                first=first, last=first + _LONG - 1, before=level, effect=off[0], p=off[1]
            )
            if found and each.first - found[-1].last <= _LONG:
                found[-1] = min(found[-1], each, key=lambda one: one.p)
            else:
                found.append(each)
    return found


def _excursion(away: Array, at: int, sd: float) -> tuple[float, float] | None:
    """Return size and P of an excursion from point `at` on of a stretch, if the points beside it do
    not belong to it and as many wild points in a row are unlikely.

    Noise is that of the other points: about one level, the excursion looks like autocorrelation.
    """
    points = away[at : at + _LONG]
    size = float(points.mean())
    if np.ptp(points) > _ONE_LEVEL * sd or float(np.abs(points).min()) < abs(size) / 2.0:
        return None
    others = np.concatenate([away[:at], away[at + _LONG :]])
    as_far = others * np.sign(size) > abs(size) / 2.0
    if as_far[at - 1] or as_far[at] or len(away) * float(as_far.mean()) ** _LONG >= STEP_P:
        return None
    noise = noise_without_wild(others, [])
    z = abs(size) / noise_of_mean(_LONG, noise) ** 0.5
    return size, min(1.0, 2.0 * float(stdtr(noise.df, -z)) * len(away))
