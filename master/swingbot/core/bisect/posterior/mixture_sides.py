"""The two sides of each possible step, and the prior of its size, which couples their levels.

Used by `mixture`. Formulas: docs/statistics.md, "The posterior of a bisection".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz

from swingbot.core.bisect.evidence.range_evidence import Floats
from swingbot.core.bisect.posterior.log_sums import exp_below
from swingbot.core.bisect.posterior.mixture_likelihood import LevelGrid, Likelihoods
from swingbot.core.bisect.thresholds import EFFECT_WIDTHS
from swingbot.core.stats.bound import Bound

_COARSE: Final = 0.25  # cells of the coarse grid, in sd of the narrowest effect prior
_MOST_CELLS: Final = 1600  # beyond, levels are a factor of e^20 apart
_BLOCK: Final = 100  # levels that are summed into cells at once
# single precision is used where the prior of D is above this share of its largest on all levels
_SINGLE_PRIOR: Final = math.exp(-30.0)


@dataclass(frozen=True)
class Coupling:
    """The prior of D, which couples the two levels.

    It is smooth, so a coarse grid is enough.
    """

    levels: Floats
    seen: Floats  # what comes through of the levels: nothing beyond a bound
    share: Floats  # level -> shares of its two coarse neighbours
    kernel: Floats  # coarse x coarse density
    # slices of levels, slices of (cell, power of the level) side by side in which they have shares,
    # and these shares times the powers
    blocks: tuple[tuple[slice, slice, NDArray[Any]], ...]
    step: float  # distance of two neighbouring levels
    middle: float  # the level from which powers are taken
    half: float  # their unit

    @cached_property
    def stepped_levels(self) -> Floats:
        """(level, level): density of a step from one to another."""
        return np.asarray(self.share @ self.kernel @ self.share.T)

    @property
    def powers(self) -> Floats:
        """(level, power)."""
        return np.asarray(((self.seen - self.middle) / self.half)[:, None] ** np.arange(3))

    def moments(self, powers: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of a level, from the sums of its powers."""
        total = np.maximum(powers[0], 1e-300)
        mean = powers[1] / total
        var = (powers[2] / total - mean**2) * self.half**2
        return mean * self.half + self.middle, np.maximum(var, self.step**2 / 12)

    def stepped(self, in_cells: Floats) -> Floats:
        """(combination of noise, gap, cell) -> the same on the other side of a step."""
        rows = in_cells.reshape(-1, in_cells.shape[-1])
        return np.asarray(rows @ self.kernel).reshape(in_cells.shape)


@lru_cache(maxsize=24)
def coupling(grid: LevelGrid, prior_effect: float, bound: Bound | None) -> Coupling:
    """`prior_effect`: as of the policy. `bound`: of the scale, that boots reach."""
    levels = seen = grid.levels
    if bound is not None:
        seen = (np.minimum if bound.upper else np.maximum)(levels, bound.value)
    narrow = min(f for f, _ in EFFECT_WIDTHS) * prior_effect
    wanted = max(2, math.ceil(float(levels[-1] - levels[0]) / (_COARSE * narrow)) + 1)
    cells = min(wanted, _MOST_CELLS)
    coarse = np.linspace(float(levels[0]), float(levels[-1]), cells)
    cell = (levels - coarse[0]) / (coarse[1] - coarse[0])
    lower = np.clip(np.floor(cell).astype(int), 0, cells - 2)
    share = np.zeros((len(levels), cells))
    rows = np.arange(len(levels))
    share[rows, lower], share[rows, lower + 1] = 1.0 - (cell - lower), cell - lower
    # levels are many orders of magnitude apart and cells wider than the prior needs: blur it
    blur = 0.0 if cells == wanted else float(coarse[1] - coarse[0]) / 2.0
    middle, half = float(levels[0] + levels[-1]) / 2.0, float(levels[-1] - levels[0]) / 2.0
    off = ((seen - middle) / half)[:, None, None] ** np.arange(3)
    density = effect_density(coarse - coarse[0], prior_effect, blur)
    single = density.min() > _SINGLE_PRIOR * density.max()
    powers = (share[:, :, None] * off).reshape(len(levels), -1)
    powers = powers.astype(np.float32 if single else np.float64)
    blocks = []
    for first in range(0, len(levels), _BLOCK):
        block = slice(first, min(first + _BLOCK, len(levels)))
        near = slice(3 * int(lower[block.start]), 3 * int(lower[block.stop - 1]) + 6)
        blocks.append((block, near, np.ascontiguousarray(powers[block, near])))
    return Coupling(levels, seen, share, toeplitz(density), tuple(blocks), grid.step, middle, half)


def effect_density(effect: Floats, prior_effect: float, blur: float = 0.0) -> Floats:
    """Prior density of the size of a step, effect scale."""
    density = np.zeros_like(effect)
    for factor, weight in EFFECT_WIDTHS:
        sd = math.hypot(factor * prior_effect, blur)
        density += weight / (sd * math.sqrt(2 * math.pi)) * np.exp(-0.5 * (effect / sd) ** 2)
    return density


@dataclass(frozen=True, slots=True)
class Sides:
    """The boots before and after each gap between measured positions, under each theta.

    The likelihoods are relative to the largest over levels, exp(`left_top`) and exp(`right_top`),
    and summed into coarse cells: (theta, gap, cell, power of the level). `whole` is
    (theta, level) -> ln likelihood of all boots, relative to that of `whole_top`.
    """

    left: Floats
    right: Floats
    left_top: Floats
    right_top: Floats
    whole: Floats
    whole_top: Floats


def sides_of(positions: Sequence[Likelihoods], coupled: Coupling) -> Sides:
    """`positions`: of the boots of each measured position."""
    gaps, cells = len(positions) - 1, coupled.share.shape[1]
    dtype = coupled.blocks[0][2].dtype
    thetas, levels = positions[0].below.shape
    in_cells = np.zeros((2, gaps, thetas, 3 * cells), dtype)
    tops = np.empty((2, gaps, thetas))
    before = [positions[0].below]
    for each in positions[1:]:
        before.append(before[-1] + each.below)
    top_before = np.cumsum([each.top for each in positions], axis=0)
    whole, whole_top = before[-1], top_before[-1]
    row = np.empty((thetas, levels), np.float32)
    for gap in range(gaps):
        for side, out in enumerate(in_cells[:, gap]):
            of_side = before[gap] if side == 0 else np.subtract(whole, before[gap], out=row)
            top = of_side.max(axis=1)
            np.subtract(of_side, top[:, None], out=row)
            likely = exp_below(row.astype(dtype, copy=False))
            tops[side, gap] = top
            for block, near, powers in coupled.blocks:
                out[:, near] += likely[:, block] @ powers
    tops[0] += top_before[:-1]
    tops[1] += whole_top - top_before[:-1]
    left, right = (each.reshape(gaps, thetas, cells, 3).transpose(1, 0, 2, 3) for each in in_cells)
    return Sides(left, right, tops[0].T, tops[1].T, np.asarray(whole, np.float64), whole_top)
