"""Two modes of boots: how often chance alone separates the sides of a comparison.

A t test assumes a unimodal spread of boots. With two distant modes, the result depends on how
many boots of each side fell into each mode.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

from swingbot.core.stats.moments import within
from swingbot.core.thresholds import FEWEST_UNPAIRED, MODE_GAP

_SHARES = 500  # values tried for the share of boots in the smaller mode


@lru_cache(maxsize=1024)
def separation_p(n: int, m: int, most: float = 0.5) -> float:
    """Return P that n and m boots of equal kernels fall into different modes.

    This is the maximum over the share of boots in the smaller mode, up to `most`.
    """
    shares = [most * i / _SHARES for i in range(1, _SHARES + 1)]
    return max(p**n * (1.0 - p) ** m + p**m * (1.0 - p) ** n for p in shares)


def most_in_smaller_mode(apart: float, sd: float) -> float:
    """Return the largest share of boots in the smaller of two modes that are `apart`, if boots
    spread by at most `sd`.

    Two modes alone spread by `apart sqrt(p (1 - p))`.
    """
    product = (sd / apart) ** 2 if apart else math.inf
    return 0.5 if product >= 0.25 else 0.5 - math.sqrt(0.25 - product)


def more_together(n: int, m: int, most: float, alpha: float) -> int:
    """Return how many more boots per side make the modes separate them with P below `alpha`."""
    more = 0
    while separation_p(n + more, m + more, most) >= alpha:
        more += 1
    return more


@lru_cache(maxsize=1024)
def least_apart(n: int, alpha: float) -> float:
    """Return how far apart n and n boots must be, in multiples of the largest possible spread, so
    that two modes explain it with P below `alpha` only.
    """
    if separation_p(n, n) < alpha:
        return 0.0
    low, high = 2.0, 4.0
    while separation_p(n, n, most_in_smaller_mode(high, 1.0)) >= alpha:
        high *= 2.0
    for _ in range(30):
        middle = (low + high) / 2.0
        few = separation_p(n, n, most_in_smaller_mode(middle, 1.0)) < alpha
        low, high = (low, middle) if few else (middle, high)
    return high


@lru_cache(maxsize=64)
def fewest_apart(rows: int) -> int:
    """Return the boots per side required so that modes are unlikely to separate any of `rows` rows.

    The probability is then at most that of FEWEST_UNPAIRED boots in a single comparison.
    """
    n = FEWEST_UNPAIRED
    most = separation_p(n, n)
    while rows * separation_p(n, n) > most:
        n += 1
    return n


def mixture_p(base: Sequence[float], head: Sequence[float]) -> float | None:
    """Return P of so uneven a distribution over two modes if both sides have the same one.

    None if the boots show no two modes, or no side has boots in both.

    Fisher's exact test on the number of boots on either side of the widest gap between adjacent
    values, if that gap is at least MODE_GAP standard deviations within the modes.
    """
    values = sorted([*base, *head])
    gap, cut = max((b - a, b) for a, b in itertools.pairwise(values))
    parts = [[v for v in values if v < cut], [v for v in values if v >= cut]]
    spread = within(parts) or 0.0
    upper = [sum(v >= cut for v in side) for side in (base, head)]
    mixed = any(0 < up < len(side) for up, side in zip(upper, (base, head), strict=True))
    if not mixed or gap < MODE_GAP * spread:
        return None
    return fisher_p(upper, [len(base), len(head)])


def fisher_p(upper: Sequence[int], sizes: Sequence[int]) -> float:
    """Two-sided P for `upper` out of `sizes`: the sum over all tables that are at most as
    likely.
    """
    total = sum(upper)

    def ways(first: int) -> int:
        return math.comb(sizes[0], first) * math.comb(sizes[1], total - first)

    tables = [ways(first) for first in range(max(0, total - sizes[1]), min(total, sizes[0]) + 1)]
    seen = ways(upper[0])
    return sum(w for w in tables if w <= seen) / sum(tables)
