"""Bounds that make all rows of a table hold simultaneously.

Rows are differences of arms, `|a_u - a_v|` over one pooled spread. The pairs (u, v) may form a
forest: a chain (each row against the one above), a star (all against one) or separate pairs. The
probability that all rows stay below a bound is then a product of messages from the leaves to a
root. It is exact up to the integration grid, and Dunnett's (JASA 50, 1955) for a star. Otherwise
Sidak's inequality (JASA 62, 1967) holds for any correlation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import stdtrit

from swingbot.core.thresholds import FAMILY_OWN_SHARE, FAMILY_UNLIKE_SHARE

Edge = tuple[int, int]  # of arms, by index: (reference, row)
Grid = np.ndarray[tuple[int], np.dtype[np.float64]]

# of the grid, in standard deviations of an arm; halving it changes no bound by 0.1 %
_STEP: Final = 0.1
_FAR: Final = 8.5  # standard deviations of an arm; the tail beyond it is 1e-17
_SPREADS: Final = 61  # points for averaging over the pooled spread
# Degrees of freedom of a pooled spread for which to integrate. Values in between use the next one,
# as more degrees of freedom make rows less dependent.
_DF: Final = (4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 36.0, 60.0, 100.0, 200.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Forest:
    """Distinct subtrees as (index of a smaller subtree, count) pairs, and those of the roots."""

    subtrees: tuple[tuple[Edge, ...], ...]
    roots: tuple[int, ...]
    rows: int


def forest_of(pairs: Sequence[Edge]) -> Forest | None:
    """Return the shape of the graph of arms; None if it has a cycle, such as a repeated pair."""
    near: dict[int, list[int]] = {}
    for u, v in pairs:
        near.setdefault(u, []).append(v)
        near.setdefault(v, []).append(u)
    known: dict[tuple[Edge, ...], int] = {}
    seen: set[int] = set()
    roots = []
    for start in sorted(near, key=lambda arm: (-len(near[arm]), arm)):
        if start not in seen:
            order, parent = _walk(start, near)
            seen.update(order)
            roots.append(_interned(order, parent, near, known))
    if len(pairs) != len(near) - len(roots):
        return None
    return Forest(tuple(known), tuple(sorted(roots)), len(pairs))


def _walk(start: int, near: dict[int, list[int]]) -> tuple[list[int], dict[int, int]]:
    """Return the arms of a component from its root outwards, and the parent of each."""
    order, parent = [start], {start: start}
    for arm in order:
        for other in near[arm]:
            if other not in parent:
                parent[other] = arm
                order.append(other)
    return order, parent


def _interned(
    order: Sequence[int],
    parent: dict[int, int],
    near: dict[int, list[int]],
    known: dict[tuple[Edge, ...], int],
) -> int:
    """Return the index of the root's subtree.

    Equal subtrees have one index; smaller ones come first in `known`.
    """
    index: dict[int, int] = {}
    for arm in reversed(order):
        children = Counter(index[c] for c in near[arm] if parent.get(c) == arm and c in index)
        index[arm] = known.setdefault(tuple(sorted(children.items())), len(known))
    return index[order[0]]


def sidak(alpha: float, rows: float) -> float:
    """Return P for each of `rows` independent rows such that any exceeds its bound with P
    `alpha`."""
    return -math.expm1(math.log1p(-alpha) / rows)


def own_share(rows: int, uses: int) -> float:
    """Return the share of a table's alpha for a row's own boots if its arms agree with the others.

    `uses` is the number of rows of the arm that is in more rows. A noisy arm that looks quiet by
    chance affects all of its rows. That the share falls with the root of their number was
    determined by simulation (docs/statistics.md, "Tables of N kernels").
    """
    return max(1.0 / rows, FAMILY_OWN_SHARE * math.sqrt(2.0 / max(uses, 2)))


def unlike_share(rows: int) -> float:
    """Return the same share for arms that do not agree.

    It is less than Bonferroni's, as Welch's form underestimates spreads that differ.
    """
    return FAMILY_UNLIKE_SHARE / rows


def uses_of(pairs: Iterable[Edge]) -> Counter[int]:
    """Return the number of rows of each arm."""
    return Counter(arm for pair in pairs for arm in pair)


def together(p: float, rows: float) -> float:
    """Return P of at least one of `rows` independent rows, each with P `p`; inverse of `sidak`."""
    return -math.expm1(rows * math.log1p(-p)) if p < 1.0 else 1.0


def independent_rows(alpha: float, forest: Forest | None, rows: int, df: float) -> float:
    """Return the number of independent rows with the same bound as `forest`, from 1 to `rows`.

    `alpha` is the probability that any row exceeds the bound. Arms have equal numbers of boots and
    one pooled spread with `df` degrees of freedom. If the graph is not a forest (None), all rows
    count by Sidak's inequality.
    """
    if forest is None or rows < 2:
        return float(rows)
    at = next((known for known in _DF if known >= df), _DF[-1])
    return _solved(alpha, forest, at)


@lru_cache(maxsize=256)
def _solved(alpha: float, forest: Forest, df: float) -> float:
    """Solve by the secant method, on log P over the number of rows."""
    target = math.log(alpha)

    def off(rows: float) -> float:
        bound = -float(stdtrit(df, sidak(alpha, rows) / 2.0))
        return math.log(exceeded(bound, forest, df)) - target

    high, low = float(forest.rows), max(1.0, 0.8 * forest.rows)
    above, below = off(high), off(low)
    for _ in range(6):
        if abs(below) < 1e-4 or above == below:
            break
        high, above, low, below = low, below, low - below * (low - high) / (below - above), 0.0
        low = min(max(low, 1.0), float(forest.rows))
        below = off(low)
    return low


def exceeded(bound: float, forest: Forest, df: float) -> float:
    """Return P that any row's Student t exceeds +-bound if no arm differs.

    All rows share one spread with `df` degrees of freedom.
    """
    spreads, weights = _pooled_spreads(df)
    return math.fsum(
        w * (1.0 - _all_within(bound * s * math.sqrt(2.0), forest))
        for s, w in zip(spreads, weights, strict=True)
        if w > 1e-14
    )


def _pooled_spreads(df: float) -> tuple[list[float], list[float]]:
    """Return values of sqrt(chi2 / df) and their weights by the trapezoidal rule in the
    logarithm."""
    sd = 1.0 / math.sqrt(2.0 * df)
    y = np.linspace(-(20.0 / df + 6.0 * sd), 6.0 * sd, _SPREADS)
    density = np.exp(df * y - df * (np.exp(2.0 * y) - 1.0) / 2.0)
    return np.exp(y).tolist(), (density / density.sum()).tolist()


def _all_within(t: float, forest: Forest) -> float:
    """Return P that all differences of standard normal arms in the forest are within +-t."""
    steps = max(8, math.ceil(t / _STEP))
    reach = math.ceil(_FAR * steps / t) if t > 0 else 0
    if not reach:
        return 0.0
    x = np.arange(-reach, reach + 1) * (t / steps)
    density = np.exp(-x * x / 2.0) * (t / steps / math.sqrt(2.0 * math.pi))
    messages: list[Grid] = []
    totals: list[float] = []
    for children in forest.subtrees:
        f = density.copy()
        for child, times in children:
            f *= messages[child] ** times
        messages.append(_window(f, steps))
        totals.append(float(f.sum()))
    return min(1.0, math.prod(totals[root] for root in forest.roots))


def _window(f: Grid, steps: int) -> Grid:
    """Integrate f from `steps` points before to `steps` points after each point (trapezoidal)."""
    padded = np.zeros(len(f) + 2 * steps)
    padded[steps:-steps] = f
    sums = np.cumsum(padded) - padded / 2.0
    return np.asarray(sums[2 * steps :] - sums[: -2 * steps], dtype=np.float64)


def information(pairs: Sequence[Edge]) -> float:
    """Return the degrees of freedom of a pooled variance of pair differences, per nominal one.

    Rows that share an arm have differences with correlation +-1/2, and variances with correlation
    1/4: Satterthwaite (Biometrics 2, 1946).
    """
    sharing = sum(n * (n - 1) for n in uses_of(pairs).values())
    return len(pairs) / (len(pairs) + sharing / 4.0)
