"""Boots that fall into two modes: how often chance alone separates the sides of a comparison.

A t test takes for granted that boots spread like one hump. With two, far apart, what decides is how many boots of each side fell into which.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

from swingbot.core.stats.moments import within
from swingbot.core.thresholds import FEWEST_UNPAIRED, MODE_GAP

_SHARES = 1000  # of the boots in one mode that are tried


def separation_p(n: int, m: int) -> float:
    """Probability that n and m boots of equal kernels fall into different modes altogether, for the worst share of boots in a mode."""
    shares = [i / _SHARES for i in range(1, _SHARES)]
    return max(p**n * (1.0 - p) ** m + p**m * (1.0 - p) ** n for p in shares)


@lru_cache(maxsize=64)
def fewest_apart(rows: int) -> int:
    """Boots a side of which modes separate one of `rows` rows no more often than FEWEST_UNPAIRED boots separate a single one."""
    n = FEWEST_UNPAIRED
    most = separation_p(n, n)
    while rows * separation_p(n, n) > most:
        n += 1
    return n


def mixture_p(base: Sequence[float], head: Sequence[float]) -> float | None:
    """Probability of so uneven a filling of two modes when both sides fill them alike; None where the boots show no two modes of which
    a side has both.

    Fisher's exact test on the numbers of boots on either side of the widest gap between neighbouring values, if that gap is at
    least MODE_GAP standard deviations within the modes.
    """
    values = sorted([*base, *head])
    gap, cut = max((b - a, b) for a, b in itertools.pairwise(values))
    parts = [[v for v in values if v < cut], [v for v in values if v >= cut]]
    spread = within(parts) or 0.0
    upper = [sum(v >= cut for v in side) for side in (base, head)]
    mixed = any(0 < up < len(side) for up, side in zip(upper, (base, head), strict=True))
    if not mixed or gap < MODE_GAP * spread:
        return None
    return _fisher_p(upper, [len(base), len(head)])


def _fisher_p(upper: Sequence[int], sizes: Sequence[int]) -> float:
    """Two-sided, of the numbers `upper` of `sizes`: every table of these sums that is no likelier."""
    total = sum(upper)

    def ways(first: int) -> int:
        return math.comb(sizes[0], first) * math.comb(sizes[1], total - first)

    tables = [ways(first) for first in range(max(0, total - sizes[1]), min(total, sizes[0]) + 1)]
    seen = ways(upper[0])
    return sum(w for w in tables if w <= seen) / sum(tables)
