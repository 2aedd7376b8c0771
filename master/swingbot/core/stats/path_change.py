"""Where runs begin to take a path far off the others, or stop taking it, in a history of points
with several runs each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import chdtrc

from swingbot.core.stats.history import Array
from swingbot.core.stats.history_modes import FEWEST
from swingbot.core.stats.path_share import far_runs
from swingbot.core.stats.rank_steps import rank_p
from swingbot.core.stats.steps import likely
from swingbot.core.thresholds import HISTORY_TREND_P, SPREAD_FLOOR, SPREAD_RANK_P

_BESIDE: Final = 3  # points on each side, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class PathChange:
    """Another share of runs far off the others from point `at` on, with 95 % one of `first` to
    `last`."""

    at: int
    first: int
    last: int
    before: float  # shares of the runs
    after: float
    runs_before: int
    pct: float  # by how much these runs differ from the others, in percent
    p: float


def path_change(points: Sequence[Array | None], *, logarithms: bool) -> PathChange | None:
    """Return the likeliest change of the share of runs far below or far above the others of their
    point; None if there is none, or if points have fewer than three runs each.

    The likelihood ratio of the counts must show it, and the ranks of the points' shares, because
    runs of a boot may take the path together. `points` hold runs as logarithms or shares.
    """
    known = [runs for runs in points if runs is not None]
    if len(known) < max(len(points), FEWEST):
        return None
    far = far_runs(known, np.zeros(len(known), np.intp), (0, 0), SPREAD_FLOOR)
    if far is None:
        return None

    def pct(offset: float) -> float:
        return 100.0 * (math.expm1(min(offset, 50.0)) if logarithms else offset)

    found = [
        change
        for taken, offset in ((far.below, far.offset_below), (far.above, far.offset_above))
        if (change := _change(taken.astype(float), far.runs.astype(float), pct(offset))) is not None
    ]
    return min(found, key=lambda change: change.p, default=None)


def _change(taken: Array, runs: Array, pct: float) -> PathChange | None:
    n = len(taken)
    before, of = np.cumsum(taken)[:-1], np.cumsum(runs)[:-1]
    ratio = _ln(before, of) + _ln(taken.sum() - before, runs.sum() - of)
    ratio = (ratio - _ln(taken.sum(), runs.sum()))[_BESIDE - 1 : n - _BESIDE]
    best = int(np.argmax(ratio))
    at, tests = best + _BESIDE, 3.0 * math.log(n)
    p = max(float(chdtrc(1, 2.0 * ratio[best])) * tests, 0.0)
    share = taken / runs
    if p >= HISTORY_TREND_P or rank_p(share[:at], share[at:]) * tests >= SPREAD_RANK_P:
        return None
    places = likely(ratio) + _BESIDE
    return PathChange(
        at=at,
        first=int(places.min()),
        last=int(places.max()),
        before=float(taken[:at].sum() / runs[:at].sum()),
        after=float(taken[at:].sum() / runs[at:].sum()),
        runs_before=int(runs[:at].sum()),
        pct=pct,
        p=min(1.0, p),
    )


def _ln(taken: Array, runs: Array) -> Array:
    """Return the largest log likelihood of `taken` of the runs."""
    share = np.clip(np.asarray(taken / runs), 1e-12, 1.0 - 1e-12)
    return np.asarray(taken * np.log(share) + (runs - taken) * np.log1p(-share))
