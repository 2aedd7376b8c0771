"""The probability that the level moves with all commits instead of at one: a line over the
range, or any number of steps.

Both are judged from the same boots and the same noise as a single step; in `mixture` on the same
grid of levels. Formulas: docs/statistics.md, "Creep".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import expit

from swingbot.core.bisect.evidence.range_evidence import Floats, Indices
from swingbot.core.bisect.posterior.log_sums import ln_sum
from swingbot.core.bisect.thresholds import (
    CREEP_LEAST_COMMITS,
    CREEP_LEAST_POSITIONS,
    CREEP_MANY_PRIOR,
    CREEP_MANY_STEPS,
    TWO_STEPS_MOST_GAPS,
)

_SIZES: Final = 41  # nodes of the size of the creep
_REACH: Final = 5.0  # half the width of that grid, in sd of the slope of a least-squares line


def may_creep(at: Indices, mass: Floats, prior: float) -> Floats | None:
    """Return the place of each measured position in the range, along which a creeping level moves:
    the share of the prior mass of all commits up to it. None if too few positions were measured to
    distinguish a creep from steps.
    """
    positions = len(np.unique(at))
    if (
        prior <= 0
        or not CREEP_LEAST_POSITIONS <= positions <= TWO_STEPS_MOST_GAPS
        or int((mass > 0).sum()) < CREEP_LEAST_COMMITS
    ):
        return None
    upto = np.cumsum(mass)[at]
    return np.asarray((upto - upto[0]) / (upto[-1] - upto[0]))


def creep_probability(
    ln_lines: Sequence[float], ln_many: Sequence[float], ln_one: float, two: float, prior: float
) -> float:
    """P(creep) against one step, two, many or none.

    `ln_lines`, `ln_many`: ln likelihoods of a line and of any number of steps under each
    combination of noise; `ln_one`: of one step or none. `two`: P(two steps against one or none).
    `prior`: of a creep.
    """
    ln_steps = ln_one - math.log1p(-min(two, 1.0 - 1e-12))  # one, two or none
    many = float(ln_sum(np.array(ln_many))) + math.log(CREEP_MANY_PRIOR)
    line = float(ln_sum(np.array(ln_lines))) + math.log(prior / (1.0 - prior))
    return float(expit(line - float(np.logaddexp(ln_steps, many))))


@dataclass(frozen=True, slots=True)
class Grid:
    """The levels considered under one combination of noise, and the likelihood of the boots."""

    points: Floats  # (measured position, level) -> ln likelihood of the boots there
    levels: Floats  # effect scale, equally spaced
    share: Floats  # level -> shares of its two coarse neighbours
    kernel: Floats  # coarse x coarse: density of a step between two levels

    @property
    def step(self) -> float:
        """Distance of two neighbouring levels."""
        return float(self.levels[1] - self.levels[0])


@dataclass(frozen=True, slots=True)
class Line:
    """ln likelihood of a line, in the unit of the step hypotheses, and the size of the creep:
    mean and variance."""

    ln: float
    size: float
    var: float


def line(grid: Grid, at: Floats, density: Floats, sizes: Floats) -> Line:
    """A level of `mu + D at` with `at` from 0 (good end) to 1 (bad end), a flat prior of mu on the
    grid, and the prior `density` of D at `sizes`."""
    many, step = len(grid.levels), grid.step
    moved = np.rint(np.outer(sizes, at) / step).astype(np.intp)
    most = int(np.abs(moved).max())
    ln = np.zeros((len(sizes), many))
    for row, shift in zip(grid.points, moved.T, strict=True):
        ln += sliding_window_view(np.pad(row, most, mode="edge"), many)[shift + most]
    with np.errstate(divide="ignore"):
        of_size = ln_sum(ln, axis=1) + np.log(density)
    total = float(ln_sum(of_size))
    weight = np.exp(of_size - total)
    mean = float(weight @ sizes)
    apart = float(sizes[1] - sizes[0])
    return Line(
        ln=total + math.log(apart / step),
        size=mean,
        var=float(weight @ (sizes - mean) ** 2) + apart**2 / 12,
    )


def sizes_of(grid: Grid, at: Floats) -> Floats:
    """The grid of sizes of a creep, centred on a least-squares line through the levels of the
    points."""
    top = grid.points.max(axis=1, keepdims=True)
    weight = np.exp(grid.points - top)
    weight /= weight.sum(axis=1, keepdims=True)
    mean = weight @ grid.levels
    var = np.maximum(weight @ grid.levels**2 - mean**2, grid.step**2 / 12)
    middle = float((at / var).sum() / (1.0 / var).sum())
    along = at - middle
    precision = float((along**2 / var).sum())
    size = float((along * mean / var).sum()) / precision
    off = mean - size * along
    off -= float((off / var).sum() / (1.0 / var).sum())
    # points that do not lie on a line widen the range of sizes
    wide = max(1.0, float((off**2 / var).sum()) / max(len(at) - 2, 1))
    reach = _REACH * math.sqrt(wide / precision)
    return np.linspace(size - reach, size + reach, _SIZES)


def many_steps(grid: Grid, mass: Floats) -> float:
    """ln likelihood of any number of steps: each gap between measured positions, with its share
    `mass` of the prior of all commits, holds one with probability `1 - exp(-CREEP_MANY_STEPS
    mass)`. A forward sum over the levels."""
    below = grid.points[0] - grid.points[0].max()
    ln, levels = float(grid.points[0].max()), np.exp(below)
    for row, share in zip(grid.points[1:], mass, strict=True):
        changed = 1.0 - math.exp(-CREEP_MANY_STEPS * float(share))
        stepped = ((levels @ grid.share) @ grid.kernel) @ grid.share.T * grid.step
        top = float(row.max())
        levels = ((1.0 - changed) * levels + changed * stepped) * np.exp(row - top)
        whole = float(levels.max())
        if whole <= 0.0:
            return -math.inf
        levels, ln = levels / whole, ln + top + math.log(whole)
    return ln + math.log(float(levels.sum())) - math.log(grid.step)
