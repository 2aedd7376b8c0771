"""Detect outliers, and compute estimates without them.

A value is an outlier if the generalised extreme studentised deviate test (Rosner, Technometrics
25, 1983) rejects it, and if it is farther from the others than the minimum effect. At most one
value in five can be an outlier; more than that is a second mode.
Formulas: docs/statistics.md, "Wild runs and boots".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import stdtr

from swingbot.core.stats.moments import mean, squares
from swingbot.core.thresholds import FEWEST_WITH_WILD, WILD_SHARE

STEPS: Final = 200  # maximum removals; for thousands of values the test does not need all


def wild(groups: Sequence[Sequence[float]], alpha: float, least: float) -> list[tuple[int, int]]:
    """Return (group, index) of outliers.

    Each group has its own mean; all share one spread. Clean Gaussian data yield any outlier with
    probability `alpha`. A value closer than `least` to the mean of the others is never an outlier.
    Groups of one or two values are ignored.
    """
    use = [
        (g, np.asarray(values, dtype=float)) for g, values in enumerate(groups) if len(values) > 2
    ]
    most = min(STEPS, sum(int(WILD_SHARE * len(values)) for _, values in use) or (1 if use else 0))
    if not use:
        return []
    label = np.concatenate([np.full(len(v), i) for i, (_, v) in enumerate(use)])
    value = np.concatenate([v for _, v in use])
    place = [(g, i) for g, v in use for i in range(len(v))]
    alive = np.ones(len(value), dtype=bool)
    removed: list[int] = []
    outliers = 0
    for _ in range(most):
        picked = _most_extreme(value, label, alive, len(use), alpha, least)
        if picked is None:
            break
        removed.append(picked[0])
        alive[picked[0]] = False
        if picked[1]:
            outliers = len(removed)
    return sorted(place[i] for i in removed[:outliers])


def _most_extreme(
    value: np.ndarray[tuple[int], np.dtype[np.float64]],
    label: np.ndarray[tuple[int], np.dtype[np.int64]],
    alive: np.ndarray[tuple[int], np.dtype[np.bool_]],
    groups: int,
    alpha: float,
    least: float,
) -> tuple[int, bool] | None:
    """Return (index of the most extreme value, whether it is an outlier); None with too few
    values."""
    n = np.bincount(label[alive], minlength=groups)
    df = int(alive.sum()) - groups - 1
    if df < FEWEST_WITH_WILD - 2 or n.min() < 2:
        return None
    middle = np.bincount(label[alive], value[alive], minlength=groups) / n
    off = np.where(alive, value - middle[label], 0.0)
    room = 1.0 - 1.0 / n[label]
    total = float(np.sum(off * off))
    size = np.abs(off) / np.sqrt(room)
    i = int(np.argmax(size))
    if total <= 0.0:
        return None
    # Squares without value i, whose own contribution is off^2 / (1 - 1/n)
    rest = max(total - float(size[i]) ** 2, 0.0)
    far = abs(float(off[i])) / float(room[i]) > least
    t = float(size[i]) / math.sqrt(rest / df) if rest > 1e-24 * total else math.inf
    p = 2.0 * float(stdtr(df, -t)) * int(alive.sum())
    return i, far and p < alpha


@dataclass(frozen=True, slots=True)
class TrimmedSample:
    """Indices (ascending) of the values in a trimmed mean, and their variance by Yuen's test."""

    kept: tuple[int, ...]
    variance: float


def middle(values: Sequence[float]) -> TrimmedSample:
    """Trim one value in five at each end.

    Yuen, Biometrika 61, 1974: winsorised squares over h - 1 for h values, with h - 1 degrees of
    freedom. Of equal values at either end the first ones are removed, so that negating all values
    does not change the selection.
    """
    g = int(WILD_SHARE * len(values))
    lowest = set(sorted(range(len(values)), key=lambda i: (values[i], i))[:g])
    highest = set(
        sorted((i for i in range(len(values)) if i not in lowest), key=lambda i: (-values[i], i))[
            :g
        ]
    )
    kept = tuple(i for i in range(len(values)) if i not in lowest | highest)
    low, high = min(values[i] for i in kept), max(values[i] for i in kept)
    total, unit = squares([min(max(v, low), high) for v in values])
    return TrimmedSample(kept, total * unit * unit / (len(kept) - 1))


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else mean(ordered[half - 1 : half + 1])
