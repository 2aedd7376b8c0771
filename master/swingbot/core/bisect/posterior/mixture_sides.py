"""The two sides of each possible step, and the prior of its size, which couples their levels.

Used by `mixture`. Formulas: docs/statistics.md, "The posterior of a bisection".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.linalg import toeplitz

from swingbot.core.bisect.evidence.range_evidence import Floats
from swingbot.core.bisect.posterior.log_sums import exp_below
from swingbot.core.bisect.thresholds import EFFECT_WIDTHS, Policy

_COARSE: Final = 0.25  # cells of the coarse grid, in sd of the narrowest effect prior
_MOST_CELLS: Final = 1600  # beyond, levels are a factor of e^20 apart
_BLOCK: Final = 100  # levels that are summed into cells at once
_CHUNK: Final = 30_000  # numbers that are worked on at once: they fit into the cache


@dataclass(frozen=True, slots=True)
class Coupling:
    """The prior of D, which couples the two levels.

    It is smooth, so a coarse grid is enough.
    """

    levels: Floats
    share: Floats  # level -> shares of its two coarse neighbours
    kernel: Floats  # coarse x coarse density
    # slices of levels, slices of (cell, power of the level) side by side in which they have shares,
    # and these shares times the powers
    blocks: tuple[tuple[slice, slice, Floats], ...]

    @property
    def step(self) -> float:
        """Distance of two neighbouring levels."""
        return float(self.levels[1] - self.levels[0])

    @property
    def middle(self) -> float:
        """The level from which powers are taken."""
        return float(self.levels[0] + self.levels[-1]) / 2.0

    def moments(self, powers: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of a level, from the sums of its powers."""
        total = np.maximum(powers[0], 1e-300)
        mean = powers[1] / total
        return mean + self.middle, np.maximum(powers[2] / total - mean**2, self.step**2 / 12)

    def stepped(self, in_cells: Floats) -> Floats:
        """(combination of noise, gap, cell) -> the same on the other side of a step."""
        rows = in_cells.reshape(-1, in_cells.shape[-1])
        return np.asarray(rows @ self.kernel).reshape(in_cells.shape)


def coupling(levels: Floats, policy: Policy) -> Coupling:
    """`levels`: equally spaced, effect scale."""
    narrow = min(f for f, _ in EFFECT_WIDTHS) * policy.prior_effect
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
    off = (levels - float(levels[0] + levels[-1]) / 2.0)[:, None, None] ** np.arange(3)
    powers = (share[:, :, None] * off).reshape(len(levels), -1)
    blocks = []
    for first in range(0, len(levels), _BLOCK):
        block = slice(first, min(first + _BLOCK, len(levels)))
        near = slice(3 * int(lower[block.start]), 3 * int(lower[block.stop - 1]) + 6)
        blocks.append((block, near, powers[block, near]))
    return Coupling(
        levels,
        share,
        toeplitz(effect_density(coarse - coarse[0], policy, blur)),
        tuple(blocks),
    )


def effect_density(effect: Floats, policy: Policy, blur: float = 0.0) -> Floats:
    """Prior density of the size of a step, effect scale."""
    density = np.zeros_like(effect)
    for factor, weight in EFFECT_WIDTHS:
        sd = math.hypot(factor * policy.prior_effect, blur)
        density += weight / (sd * math.sqrt(2 * math.pi)) * np.exp(-0.5 * (effect / sd) ** 2)
    return density


@dataclass(frozen=True, slots=True)
class Sides:
    """The boots before and after each gap between measured positions, under each theta.

    The likelihoods are relative to the largest over levels, exp(`left_top`) and exp(`right_top`),
    and summed into coarse cells: (theta, gap, cell, power of the level). `whole` is
    (theta, level) -> ln likelihood of all boots.
    """

    left: Floats
    right: Floats
    left_top: Floats
    right_top: Floats
    whole: Floats


def sides_of(points: Floats, coupled: Coupling) -> Sides:
    """`points`: (theta, measured position, level) -> ln likelihood of the boots there."""
    thetas, many, levels = points.shape
    gaps, cells = many - 1, coupled.share.shape[1]
    in_cells = np.zeros((2, thetas, gaps, cells, 3))
    tops = np.empty((2, thetas, gaps))
    whole = np.empty((thetas, levels))
    chunk = max(1, _CHUNK // (gaps * levels))
    both = np.empty((2, chunk, gaps, levels))
    for first in range(0, thetas, chunk):
        some = slice(first, first + chunk)
        point, (left, right) = points[some], both[:, : min(chunk, thetas - first)]
        before = point[:, 0]
        for gap in range(gaps):
            left[:, gap] = before
            before = before + point[:, gap + 1]
        whole[some] = before
        np.subtract(before[:, None], left, out=right)
        for side, top, out in zip((left, right), tops[:, some], in_cells[:, some], strict=True):
            side.max(axis=2, out=top)
            side -= top[:, :, None]
            rows = exp_below(side.reshape(-1, levels))
            sums = out.reshape(len(rows), -1)
            for block, near, powers in coupled.blocks:
                sums[:, near] += rows[:, block] @ powers
    return Sides(in_cells[0], in_cells[1], tops[0], tops[1], whole)
