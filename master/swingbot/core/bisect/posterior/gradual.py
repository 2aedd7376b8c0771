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
from scipy.special import expit

from swingbot.core.bisect.evidence.range_evidence import Floats, Indices
from swingbot.core.bisect.posterior.log_sums import exp_below, ln_sum
from swingbot.core.bisect.thresholds import (
    CREEP_LEAST_COMMITS,
    CREEP_LEAST_POSITIONS,
    CREEP_MANY_PRIOR,
    CREEP_MANY_STEPS,
    TWO_STEPS_MOST_GAPS,
)

_SIZES: Final = 25  # nodes of the size of the creep
_REACH: Final = 5.0  # of sizes and levels, in their sd about a least-squares line


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
    """The levels considered, and the likelihood of the boots under some combinations of noise."""

    points: Floats  # (combination, measured position, level) -> ln likelihood of the boots there
    levels: Floats  # effect scale, equally spaced
    stepped: Floats  # (level, level): density of a step between the two

    @property
    def step(self) -> float:
        """Distance of two neighbouring levels."""
        return float(self.levels[1] - self.levels[0])


@dataclass(frozen=True, slots=True)
class Line:
    """ln likelihood of a line, in the unit of the step hypotheses, and the size of the creep:
    mean and variance. All by combination."""

    ln: Floats
    size: Floats
    var: Floats


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines considered, by combination: a least-squares line through the levels of the points,
    and as far around it as its error, or more where the points do not lie on a line."""

    middle: Floats  # place at which level and size are independent
    level: Floats  # there
    level_reach: Floats
    sizes: Floats  # (combination, size)

    @classmethod
    def near(cls, grid: Grid, at: Floats) -> Lines:
        """`at`: as of `line`."""
        weight = exp_below(grid.points - grid.points.max(axis=2, keepdims=True))
        weight /= weight.sum(axis=2, keepdims=True)
        mean = weight @ grid.levels
        var = np.maximum(weight @ grid.levels**2 - mean**2, grid.step**2 / 12)
        whole = (1.0 / var).sum(axis=1, keepdims=True)
        middle = (at / var).sum(axis=1, keepdims=True) / whole
        along = at - middle
        precision = (along**2 / var).sum(axis=1, keepdims=True)
        size = (along * mean / var).sum(axis=1, keepdims=True) / precision
        off = mean - size * along
        level = (off / var).sum(axis=1, keepdims=True) / whole
        misfit = ((off - level) ** 2 / var).sum(axis=1, keepdims=True) / max(len(at) - 2, 1)
        reach = _REACH * np.sqrt(np.maximum(1.0, misfit))
        sizes = size + reach / np.sqrt(precision) * np.linspace(-1.0, 1.0, _SIZES)
        return cls(middle[:, 0], level[:, 0], (reach / np.sqrt(whole))[:, 0], sizes)


def line(grid: Grid, at: Floats, lines: Lines, density: Floats) -> Line:
    """A level of `mu + D at` with `at` from 0 (good end) to 1 (bad end), a flat prior of mu, and
    the prior `density` of D, (combination, size), at the sizes of `lines`."""
    many, step = len(grid.levels), grid.step
    combinations = np.arange(grid.points.shape[0])[:, None, None]
    reach = min(math.ceil(float(lines.level_reach.max()) / step), many)
    centre = (lines.level - grid.levels[0]) / step
    levels = np.rint(centre)[:, None, None] + np.arange(-reach, reach + 1)
    ln = np.zeros((*lines.sizes.shape, 2 * reach + 1))
    for i, place in enumerate(at.tolist()):
        off = np.rint(lines.sizes * ((place - lines.middle) / step)[:, None])
        moved = np.minimum(np.maximum(levels + off[:, :, None], 0.0), many - 1.0)
        ln += grid.points[combinations, i, moved.astype(np.intp)]
    with np.errstate(divide="ignore"):
        of_size = ln_sum(ln, axis=2) + np.log(density)
    total = ln_sum(of_size, axis=1)
    weight = np.exp(of_size - total[:, None])
    sizes = lines.sizes
    mean = (weight * sizes).sum(axis=1)
    apart = sizes[:, 1] - sizes[:, 0]
    return Line(
        ln=total + np.log(apart / step),
        size=mean,
        var=(weight * (sizes - mean[:, None]) ** 2).sum(axis=1) + apart**2 / 12,
    )


def many_steps(grid: Grid, mass: Floats) -> Floats:
    """Combination -> ln likelihood of any number of steps: each gap between measured positions,
    with its share `mass` of the prior of all commits, holds one with probability
    `1 - exp(-CREEP_MANY_STEPS mass)`. A forward sum over the levels."""
    top = grid.points.max(axis=2, keepdims=True)
    likely = exp_below(grid.points - top)
    levels, ln = likely[:, 0], top.sum(axis=(1, 2))
    changed = -np.expm1(-CREEP_MANY_STEPS * mass)
    with np.errstate(divide="ignore"):
        for i, share in enumerate(changed.tolist(), 1):
            stepped = levels @ grid.stepped
            levels = ((1.0 - share) * levels + (share * grid.step) * stepped) * likely[:, i]
            whole = np.maximum(levels.max(axis=1, keepdims=True), 1e-300)
            levels = levels / whole
            ln = ln + np.log(whole[:, 0])
        return np.asarray(ln + np.log(levels.sum(axis=1)) - math.log(grid.step))
