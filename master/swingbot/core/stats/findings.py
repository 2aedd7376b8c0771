"""Findings in a history of numbers: steps, creep, changes of spread, modes, machine changes.

Formulas: docs/statistics.md, "Histories". Levels and noise come from `core/stats/steps.py`. The
expected next point, used to judge new tips of watched branches, comes from
`core/stats/history.py`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, stdtr

from swingbot.core.stats.history import Array, baseline, robust_sd
from swingbot.core.stats.steps import LevelStep, StepNoise, find_steps, noise_about
from swingbot.core.stats.tip_spreads import SpreadChange, TipSpread, change_within
from swingbot.core.thresholds import (
    CREEP_MARGIN,
    HISTORY_EFFICIENCY,
    HISTORY_TREND_P,
    MODE_LEAST_SHARE,
    MODES_SDS,
    SCREEN_FEWEST_TIPS,
    SCREEN_TIPS,
    SPREAD_FLOOR,
)

FEWEST: Final = 2 * SCREEN_FEWEST_TIPS  # minimum number of points to test spread and modes


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelSegment:
    """The mean of points `first` to `last` (inclusive indices), in the unit of the values."""

    first: int
    last: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelChange:
    """A step, in percent of the level before it.

    `machine`: the anchor measured with it moved in the same way.
    """

    at: int
    first: int
    last: int
    pct: float
    low_pct: float
    high_pct: float
    p: float
    machine: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Creep:
    """A straight line that explains the points better than steps do; `pct` from first to last."""

    pct: float
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Two groups of points, `apart_pct` percent apart; `share` of the points are in the smaller."""

    apart_pct: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """The last point compared with the expectation from those before it."""

    pct: float  # distance from the median of the last points
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    points: int
    levels: tuple[LevelSegment, ...]
    changes: tuple[LevelChange, ...]
    noise_pct: float  # standard deviation of a point about its level
    alike: float  # autocorrelation of adjacent points
    creep: Creep | None = None
    spread: SpreadChange | None = None  # of the points about their level
    boots_spread: SpreadChange | None = None  # of the boots of a point
    modes: Modes | None = None
    latest: Latest | None = None
    anchor: Findings | None = None  # of the anchor kernel measured with each point


def look(
    values: Sequence[float],
    anchors: Sequence[float] | None = None,
    spreads: Sequence[TipSpread | None] = (),
) -> Findings:
    """Analyse values, oldest first.

    `anchors` are measurements of one fixed kernel, one for each value, `spreads` those between the
    boots of each value. Raises ValueError without values.
    """
    if not values:
        raise ValueError("a history needs at least one value")
    scaled = _scaled(values)
    latest = _latest(scaled)
    modes, lower = _modes(scaled)
    if modes is not None:  # steps are changes of the level within the modes
        scaled = np.where(lower, scaled + math.log1p(modes.apart_pct / 100.0), scaled)
    steps, noise = find_steps(scaled)
    creep = _creep(scaled, steps, noise)
    if creep is not None:
        steps = []
    anchor = look(anchors) if anchors is not None else None
    residuals = _about_levels(scaled, steps, creep)
    return Findings(
        points=len(values),
        levels=_levels(values, steps),
        changes=tuple(_change(step, anchor) for step in steps),
        noise_pct=100.0 * (robust_sd(residuals) if creep is not None else noise.sd),
        alike=noise.alike,
        creep=creep,
        spread=_spread(residuals, noise),
        boots_spread=_boots_spread(spreads),
        modes=modes,
        latest=latest,
        anchor=anchor,
    )


def _scaled(values: Sequence[float]) -> Array:
    """Return logarithms, or shares of the mean magnitude if any value is not positive."""
    array = np.asarray(values, dtype=float)
    return np.log(array) if array.min() > 0 else array / (float(np.abs(array).mean()) or 1.0)


def _levels(values: Sequence[float], steps: Sequence[LevelStep]) -> tuple[LevelSegment, ...]:
    edges = [0, *(step.at for step in steps), len(values)]
    return tuple(
        LevelSegment(first=a, last=b - 1, mean=math.fsum(values[a:b]) / (b - a))
        for a, b in itertools.pairwise(edges)
    )


def _change(step: LevelStep, anchor: Findings | None) -> LevelChange:
    moved = anchor.changes if anchor is not None else ()
    return LevelChange(
        at=step.at,
        first=step.first,
        last=step.last,
        pct=_pct(step.effect),
        low_pct=_pct(step.low),
        high_pct=_pct(step.high),
        p=step.p,
        machine=any(
            other.pct * step.effect > 0 and other.first <= step.last and step.first <= other.last
            for other in moved
        ),
    )


def _creep(values: Array, steps: Sequence[LevelStep], noise: StepNoise) -> Creep | None:
    """Fit a line in place of the steps if Schwarz's criterion prefers it.

    A step has two parameters; a line has one more than a constant level. Each model is judged by
    what it leaves unpredicted from point to point, with its own autocorrelation: about a line
    through large steps neighbours look alike, and would leave few independent points to tell the
    two apart.
    """
    n = len(values)
    if n < FEWEST:
        return None
    x = np.arange(n) - (n - 1) / 2.0
    slope = float(x @ (values - values.mean()) / (x @ x))
    about = noise_about(values - slope * x, [])
    worth = n * (1.0 - about.alike) / (1.0 + about.alike)  # independent points
    line = n * _unpredicted(about) + math.log(n)
    stairs = n * _unpredicted(noise) + 2 * len(steps) * math.log(n)
    t = slope / (about.sd * math.sqrt(n / worth / float(x @ x)))
    p = 2.0 * float(stdtr(max(about.df - 1.0, 3.0), -abs(t)))
    if p >= HISTORY_TREND_P or line + (CREEP_MARGIN if steps else 0.0) >= stairs:
        return None
    return Creep(pct=_pct(slope * (n - 1)), p=p)


def _unpredicted(noise: StepNoise) -> float:
    """Return the logarithm of the variance of a point given the one before it."""
    return 2.0 * math.log(noise.sd) + math.log1p(-(noise.alike**2))


def _about_levels(values: Array, steps: Sequence[LevelStep], creep: Creep | None) -> Array:
    n = len(values)
    if creep is not None:
        line = np.linspace(0.0, math.log1p(creep.pct / 100.0), n)
        return np.asarray(values - line - np.median(values - line))
    parts = np.split(values, [step.at for step in steps])
    return np.concatenate([part - np.median(part) for part in parts])


def _spread(residuals: Array, noise: StepNoise) -> SpreadChange | None:
    """Find the point where the spread changes most.

    Uses an F test with the number of independent points as degrees of freedom.
    """
    n = len(residuals)
    if n < FEWEST:
        return None
    share = HISTORY_EFFICIENCY * (1.0 - noise.alike) / (1.0 + noise.alike)
    best: SpreadChange | None = None
    every = max(1, n // 100)
    for at in range(SCREEN_FEWEST_TIPS, n - SCREEN_FEWEST_TIPS + 1, every):
        left, right = (
            max(robust_sd(part), SPREAD_FLOOR) for part in (residuals[:at], residuals[at:])
        )
        ratio, dfs = (right / left) ** 2, (share * (n - at), share * at)
        upper = fdtrc(*dfs, ratio) if ratio > 1 else fdtrc(dfs[1], dfs[0], 1.0 / ratio)
        p = min(1.0, 2.0 * float(upper) * 3.0 * math.log(n))
        if best is None or p < best.p:
            best = SpreadChange(at=at, times=right / left, p=p)
    return best if best is not None and best.p < HISTORY_TREND_P else None


def _boots_spread(spreads: Sequence[TipSpread | None]) -> SpreadChange | None:
    known = [(at, spread) for at, spread in enumerate(spreads) if spread is not None]
    change = change_within([spread for _, spread in known])
    return replace(change, at=known[change.at][0]) if change is not None else None


def _modes(values: Array) -> tuple[Modes | None, npt.NDArray[np.bool_]]:
    """Return two modes and a mask of the points in the lower one.

    The cut of the sorted points minimises the squares within both sides. The points must change
    sides as often as by chance (Wald and Wolfowitz, Ann. Math. Stat. 11, 1940); with a step, they
    do so once.
    """
    n, nowhere = len(values), np.zeros(len(values), dtype=bool)
    ordered = np.sort(values)
    least = max(3, math.ceil(MODE_LEAST_SHARE * n))
    if n < FEWEST or n < 2 * least:
        return None, nowhere
    # Squares within both sides of each cut, from running sums about the mean
    sums = np.cumsum(ordered - ordered.mean())[least - 1 : n - least]
    sizes = np.arange(least, n - least + 1)
    cut = int(sizes[np.argmax(sums**2 / sizes + sums**2 / (n - sizes))])
    low, high = ordered[:cut], ordered[cut:]
    within = math.sqrt((float(low.var()) * len(low) + float(high.var()) * len(high)) / n)
    apart, lower = float(high.mean() - low.mean()), values < high[0]
    turns = 1 + int(np.count_nonzero(lower[1:] != lower[:-1]))
    expected = 1.0 + 2.0 * len(low) * len(high) / n
    sd = math.sqrt(max((expected - 1.0) * (expected - 2.0) / (n - 1), 0.0))
    if apart < MODES_SDS * max(within, SPREAD_FLOOR) or turns < expected - 2.0 * sd:
        return None, nowhere
    return Modes(apart_pct=_pct(apart), share=min(len(low), len(high)) / n), lower


def _latest(values: Array) -> Latest | None:
    before = values[-1 - SCREEN_TIPS : -1]
    if len(before) < SCREEN_FEWEST_TIPS:
        return None
    expected = baseline(before)
    last = float(values[-1])
    return Latest(pct=_pct(last - expected.median), p=expected.p(last - expected.centre))


def _pct(effect: float) -> float:
    return 100.0 * math.expm1(min(effect, 50.0))
