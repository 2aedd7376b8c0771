"""A history whose noise changes many times over: its parts are analysed one by one.

Formulas: docs/statistics.md, "Histories".
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np
from scipy.special import stdtr, stdtrit

from swingbot.core.stats.history import Array
from swingbot.core.stats.steps import LevelStep, likely, noise_of_mean, noise_without_wild
from swingbot.core.stats.tip_spreads import SpreadChange, TipSpread, change_within
from swingbot.core.thresholds import INTERVAL_ALPHA, LOUDER_TIMES, STEP_P

_MOST_POINTS: Final = 2000  # the search takes n^2 steps


def louder(values: Array) -> SpreadChange | None:
    """Return where neighbours begin to differ `LOUDER_TIMES` as much, or as little; else None.

    A step makes one difference large, so that steps do not count.
    """
    if len(values) > _MOST_POINTS:
        return None
    change = change_within([TipSpread(sd=abs(float(d)), df=1) for d in np.diff(values)])
    if change is None or max(change.times, 1.0 / change.times) < LOUDER_TIMES:
        return None
    return replace(change, at=change.at + 1)


def step_between(values: Array, begin: int, at: int, end: int) -> LevelStep | None:
    """Return the step between two levels of unlike noise, from point `at` on (Welch); None if there
    is none."""
    parts = values[begin:at], values[at:end]
    noises = [noise_without_wild(part, []) for part in parts]
    levels = [float(np.mean(part)) for part in parts]
    variance = sum(
        noise_of_mean(len(part), noise) for part, noise in zip(parts, noises, strict=True)
    )
    effect, sd = levels[1] - levels[0], math.sqrt(variance)
    df = min(noise.df for noise in noises)
    p = 2.0 * float(stdtr(df, -abs(effect) / sd)) * 3.0 * math.log(len(values))
    if p >= STEP_P:
        return None
    before, after = (
        np.cumsum(-0.5 * ((values[begin:end] - level) / noise.sd) ** 2 - math.log(noise.sd))
        for level, noise in zip(levels, noises, strict=True)
    )
    places = begin + 1 + likely((before + after[-1] - after)[:-1])
    half = float(-stdtrit(df, INTERVAL_ALPHA / 2)) * sd
    return LevelStep(
        at=at,
        first=int(min(at, *places)),
        last=int(max(at, *places)),
        parts=False,
        before=levels[0],
        effect=effect,
        low=effect - half,
        high=effect + half,
        p=p,
    )
