"""Modes of a history: groups that points fall into by chance, and where their shares change.

Formulas: docs/statistics.md, "Histories".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from swingbot.core.stats.history import Array
from swingbot.core.stats.steps import likely
from swingbot.core.thresholds import (
    HISTORY_TREND_P,
    MODE_LEAST_SHARE,
    MODES_SDS,
    SCREEN_FEWEST_TIPS,
    SPREAD_FLOOR,
)

Labels = npt.NDArray[np.intp]
FEWEST: Final = 2 * SCREEN_FEWEST_TIPS  # minimum number of points to test spread and modes
_FEWEST_OF_MODE: Final = 3
_MOST_MODES: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareChange:
    """Where the shares of the modes change: index of the first point with the new shares."""

    at: int
    first: int  # with 95 % the new shares begin between these two points (inclusive)
    last: int
    p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModesFound:
    """The mode of each point, numbered from the lowest, and where their shares change."""

    labels: Labels
    changes: tuple[ShareChange, ...]

    @property
    def edges(self) -> list[int]:
        """Ends of the stretches with the same shares, from 0 to the number of points."""
        return [0, *(change.at for change in self.changes), len(self.labels)]

    def mixed(self, begin: int, end: int) -> bool:
        """Whether points of a stretch fall into several modes by chance."""
        return _mixed(self.labels[begin:end])


def find_modes(values: Array) -> ModesFound | None:
    """Return the modes of a history; None if levels, one after another, explain it.

    In some stretch points must fall into several modes and change between them as often as by
    chance; in the others they stay in one.
    """
    if len(values) < FEWEST:
        return None
    labels = _labels(values)
    if labels is None:
        return None
    found = ModesFound(labels=labels, changes=_changes(labels))
    stretches = [labels[a:b] for a, b in itertools.pairwise(found.edges)]
    several = [stretch for stretch in stretches if len(_present(stretch)) > 1]
    return found if several and all(_mixed(stretch) for stretch in several) else None


def _labels(values: Array) -> Labels | None:
    """Number the groups of the sorted points that gaps of `MODES_SDS` spreads within them separate.

    Of all numbers of groups the largest counts, and at most one point in twenty belongs to none.
    Two modes may touch: there the means on both sides of the best cut must be that far apart.
    """
    ordered = np.sort(values)
    gaps = np.argsort(-np.diff(ordered), kind="stable")[: 2 * _MOST_MODES] + 1
    for many in range(len(gaps), 0, -1):
        parts = np.split(ordered, np.sort(gaps[:many]))
        groups = [part for part in parts if len(part) >= _FEWEST_OF_MODE]
        clear = min((b[0] - a[-1] for a, b in itertools.pairwise(groups)), default=0.0)
        outside = len(values) - sum(map(len, groups))
        if (
            2 <= len(groups) <= _MOST_MODES
            and outside <= 0.05 * len(values)
            and clear >= MODES_SDS * _within(groups)
        ):
            means = np.array([group.mean() for group in groups])
            return np.asarray(np.searchsorted((means[1:] + means[:-1]) / 2.0, values))
    cut = _halves(ordered)
    halves = ordered[:cut], ordered[cut:]
    if halves[1].mean() - halves[0].mean() < MODES_SDS * _within(halves):
        return None
    return np.asarray(values >= halves[1][0]).astype(np.intp)


def _within(groups: Sequence[Array]) -> float:
    """Return the standard deviation of the points about the means of their groups."""
    squares = sum(float(group.var()) * len(group) for group in groups)
    return max(math.sqrt(squares / max(sum(map(len, groups)), 1)), SPREAD_FLOOR)


def _halves(ordered: Array) -> int:
    """Return the cut of sorted points with the least squares within both sides."""
    n = len(ordered)
    least = max(_FEWEST_OF_MODE, math.ceil(MODE_LEAST_SHARE * n))
    sums = np.cumsum(ordered - ordered.mean())[least - 1 : n - least]
    sizes = np.arange(least, n - least + 1)
    return int(sizes[np.argmax(sums**2 / sizes + sums**2 / (n - sizes))])


def _changes(labels: Labels) -> tuple[ShareChange, ...]:
    """Return where the shares change, each given its neighbours.

    A share that changes and changes back hides both: two more places are tried together.
    """
    kept: list[ShareChange] = []
    while True:
        cuts = [change.at for change in kept]
        for _ in range(2):
            edges = [0, *cuts, len(labels)]
            best = min(
                (_change(labels, *each) for each in itertools.pairwise(edges)),
                key=lambda change: change.p,
            )
            cuts = sorted({*cuts, best.at} - {0})
            more = _significant(labels, cuts)
            if len(more) > len(kept):
                break
        if len(more) <= len(kept):
            return tuple(kept)
        kept = more


def _significant(labels: Labels, cuts: Sequence[int]) -> list[ShareChange]:
    """Return the changes that remain significant beside the others, each at its best place."""
    cuts = list(cuts)
    while True:
        changes = []
        for n in range(len(cuts)):
            edges = [0, *cuts, len(labels)]
            changes.append(_change(labels, edges[n], edges[n + 2]))
            if changes[n].p < 1.0:
                cuts[n] = changes[n].at
        weakest = max(changes, key=lambda change: change.p, default=None)
        if weakest is None or weakest.p < HISTORY_TREND_P:
            return changes
        del cuts[changes.index(weakest)]


def _change(labels: Labels, begin: int, end: int) -> ShareChange:
    """Return the likeliest change of the shares in a stretch.

    The likelihood ratio of the counts before and after is a chi square with a degree of freedom for
    each mode but one; the choice of place counts as `3 ln n` tests.
    """
    n = end - begin
    kinds, counts = np.unique(labels[begin:end], return_counts=True)
    each = labels[begin:end, None] == kinds[counts >= _FEWEST_OF_MODE]
    before = np.cumsum(each, axis=0)[_FEWEST_OF_MODE - 1 : n - _FEWEST_OF_MODE].astype(float)
    if not len(before) or each.shape[1] < 2:
        return ShareChange(at=begin, first=begin, last=begin, p=1.0)
    total = each.sum(axis=0)
    ratio = 2.0 * (_log_likelihood(before) + _log_likelihood(total - before))
    ratio -= 2.0 * _log_likelihood(total[None, :].astype(float))
    best = int(np.argmax(ratio))
    places = likely(ratio / 2.0) + begin + _FEWEST_OF_MODE
    p = float(chdtrc(each.shape[1] - 1, ratio[best])) * 3.0 * math.log(n)
    return ShareChange(
        at=begin + _FEWEST_OF_MODE + best,
        first=int(places.min()),
        last=int(places.max()),
        p=min(1.0, p),
    )


def _log_likelihood(counts: Array) -> Array:
    sizes = counts.sum(axis=1, keepdims=True)
    shares = np.where(counts > 0, counts / np.maximum(sizes, 1.0), 1.0)
    return np.asarray((counts * np.log(shares)).sum(axis=1))


def _present(labels: Labels) -> Labels:
    """Return the modes of a stretch, without those that a few wild points may be."""
    kinds, counts = np.unique(labels, return_counts=True)
    return np.asarray(kinds[counts >= max(2, MODE_LEAST_SHARE * len(labels))])


def _mixed(labels: Labels) -> bool:
    """Whether a stretch changes between modes as often as by chance.

    Runs of several kinds: Mood, Ann. Math. Stat. 11, 1940. With a step, modes change once.
    """
    n = len(labels)
    counts = np.unique(labels, return_counts=True)[1].astype(float)
    if n < SCREEN_FEWEST_TIPS or len(_present(labels)) < 2:
        return False
    squares, cubes = float((counts**2).sum()), float((counts**3).sum())
    expected = n + 1.0 - squares / n
    variance = (squares * (squares + n * (n + 1.0)) - 2.0 * n * cubes - n**3) / (n * n * (n - 1.0))
    runs = 1 + int(np.count_nonzero(labels[1:] != labels[:-1]))
    return runs >= expected - 2.5 * math.sqrt(max(variance, 0.0))
