"""Whether the order of the points confirms a step, and how noisy they are where it is.

Means of clipped points are compared with one spread for the whole history. Heavy tails, a bound
that many points reach, and noise that grows need more: a step must also show in the ranks, and
against the noise beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import ndtr

from swingbot.core.stats.history import Array
from swingbot.core.stats.trend import concordance

# Points on each side whose spread is that beside a step, and how much wider it must be than that of
# the history. Smaller: chance makes it wider, and plain steps are missed.
_BESIDE: Final = 20
_WIDER: Final = 1.25
_TAILS: Final = 1.3  # at most, of clipped points


def rank_p(before: Array, after: Array) -> float:
    """Return the two-sided P of the ranks of `after` among all if nothing changed.

    Mann and Whitney's test (Ann. Math. Stat. 18, 1947) of independent points, corrected for ties.
    """
    n, m = len(before), len(after)
    all_ranks = ranks(np.concatenate([before, after]))
    variance = n * m / (n + m) * float(all_ranks.var(ddof=1))
    if variance <= 0.0:
        return 1.0
    away = abs(float(all_ranks[n:].sum()) - m * (n + m + 1) / 2.0)
    return 2.0 * float(ndtr(-max(away - 0.5, 0.0) / math.sqrt(variance)))


def ranks(values: Array) -> Array:
    """Return the rank of each value from 1; equal values have the mean of theirs."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(sizes) - (sizes - 1) / 2.0)[group])


def sd_beside(before: Array, after: Array, sd: float) -> float:
    """Return the spread of the points beside a step about their levels, if it is clearly wider
    than `sd`; else `sd`."""
    parts = before[-_BESIDE:], after[:_BESIDE]
    n = sum(map(len, parts)) - len(parts)
    squares = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
    beside = math.sqrt(squares / max(n, 1))
    return beside if beside > _WIDER * sd else sd


def heavy_tails(values: Array, cuts: Sequence[int], sd: float) -> float:
    """Return the standard deviation about the levels over the robust one, `sd`: 1 to `_TAILS`.

    More is not noise but steps that were not found.
    """
    about = np.concatenate([part - part.mean() for part in np.split(values, list(cuts))])
    return min(max(1.0, float(about.std()) / sd), _TAILS)


def kendall_p(values: Array, worth: float) -> float:
    """Return the two-sided P of the rising less falling pairs if there is no trend.

    Kendall's S with the variance of ties (Rank Correlation Methods, 1970); `worth` is the share of
    the points that are independent.
    """
    n, counts = len(values), np.unique(values, return_counts=True)[1].astype(float)
    ties = float((counts * (counts - 1.0) * (2.0 * counts + 5.0)).sum())
    variance = (n * (n - 1.0) * (2.0 * n + 5.0) - ties) / 18.0 / worth
    score = abs(concordance(values.tolist()))
    return 2.0 * float(ndtr(-max(score - 1, 0) / math.sqrt(variance))) if variance > 0.0 else 1.0
