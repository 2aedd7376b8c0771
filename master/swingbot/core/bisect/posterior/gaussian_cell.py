"""The likelihood of boots if all noise is Gaussian, under one combination of noise ratios.

    y = mu + D * [after the step] + layout(kernel) + shift + boot

The shift, the levels and the size of the step are integrated in closed form (docs/statistics.md,
"The posterior of a bisection"). Everything is on the effect scale: natural logs, or differences in
units of the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from swingbot.core.bisect.evidence.range_evidence import Floats, Indices
from swingbot.core.bisect.posterior.gaps import gap_pairs
from swingbot.core.bisect.thresholds import TWO_STEPS_MOST_GAPS, Policy
from swingbot.core.model.noise import NoisePrior
from swingbot.core.thresholds import SPREAD_FLOOR


@dataclass(frozen=True, slots=True)
class Sums:
    """Boots, one number each, and which kernels and blocks (values of k) they belong to."""

    # positions of the measured kernels, ascending; a commit that was built in several layouts
    # appears once for each of them
    at: Indices
    point: Indices  # boot -> index into `at`
    block: Indices  # boot -> index of its k
    weight: Floats  # 1; less for a boot that is probably wild
    level: Floats  # centred on `centre`
    centre: float


class Shift:
    """The shift that boots share apart from their kernel, integrated out.

    Each block of equal k has a shift of variance `kappa` (in units of the variance of one boot), or
    boots have the covariance `together`. `along`: the place of each kernel in the range, if a creep
    is considered. `alone`: at most one step is considered.
    """

    def __init__(
        self,
        sums: Sums,
        kappa: float,
        together: Floats | None = None,
        along: Floats | None = None,
        *,
        alone: bool = False,
    ) -> None:
        self.sums, self.kappa, self.together, self.along = sums, kappa, together, along
        self.alone = alone

    @cached_property
    def information(self) -> tuple[Floats, Floats, float, float]:
        """As of `information_of`; it does not depend on the layout, so all cells share it."""
        if self.together is None:
            return information_of(self.sums, self.kappa)
        sums, points = self.sums, len(self.sums.at)
        covariance = self.together + np.diag(1.0 / sums.weight)
        shares = np.zeros((len(sums.level), points + 1))
        shares[np.arange(len(sums.level)), sums.point] = 1.0
        shares[:, -1] = sums.level
        factor = cholesky(covariance, lower=True)
        half = solve_triangular(factor, shares, lower=True)
        whole = half.T @ half
        ln_det = 2.0 * float(np.log(np.diag(factor)).sum()) + float(np.log(sums.weight).sum())
        return whole[:-1, :-1], whole[:-1, -1], float(whole[-1, -1]), ln_det


@dataclass(frozen=True, slots=True)
class GaussianCell:
    """The posterior under one combination of noise ratios.

    Arrays are over the gaps between measured positions; the last entry is "no change".
    """

    ln_weight: float
    ln_likelihood: Floats
    effect: Floats  # of D; 0 in the last entry
    low: Floats
    scale2: Floats  # approximate posterior mean of the variance of a boot
    df: float
    var: Floats  # of D, in units of scale2
    lam: float
    # (pairs of gaps,): ln likelihood of a step in each of the two, in the order of `gap_pairs`
    two: Floats
    gradual: Gradual | None = None  # None: too few positions to tell a line from a step


@dataclass(frozen=True, slots=True)
class Gradual:
    """The level moves with the commits: a line over the range, or a random walk."""

    ln_line: float
    ln_walk: float
    size: float  # of the line, over the whole range
    var: float


def information_of(sums: Sums, kappa: float) -> tuple[Floats, Floats, float, float]:
    """The likelihood of the levels of the measured positions, with the shifts of k integrated out.

    Returns matrix M, vector v and scalar c of the quadratic form c - 2 a'v + a'M a, and the ln
    determinant so far. `kappa` is the variance of a shift in variances of a boot; 0: no blocks.
    """
    w = sums.weight
    points = len(sums.at)
    info: Floats = np.diag(np.bincount(sums.point, w, points)).astype(np.float64)
    vector: Floats = np.bincount(sums.point, w * sums.level, points).astype(np.float64)
    square, ln_det = float((w * sums.level**2).sum()), 0.0
    if kappa > 0:
        blocks = int(sums.block.max()) + 1
        shared = np.zeros((blocks, points))
        np.add.at(shared, (sums.block, sums.point), w)
        weight, pull = (
            np.bincount(sums.block, w, blocks),
            np.bincount(sums.block, w * sums.level, blocks),
        )
        by = shared / (weight + 1.0 / kappa)[:, None]
        info, vector = info - shared.T @ by, vector - by.T @ pull
        square -= float((pull**2 / (weight + 1.0 / kappa)).sum())
        ln_det += float(np.log1p(kappa * weight).sum())
    return info, vector, square, ln_det


@dataclass(frozen=True, slots=True)
class CellPrior:
    """What is known before the boots of a bisection."""

    spread: float  # sd of one boot
    certainty: float  # of that, as in a noise record
    effect: float  # sd of D, in sd of a boot

    @staticmethod
    def for_boots(spread: float, noise: NoisePrior, sd: float, policy: Policy) -> CellPrior:
        """`sd`: of one boot, from all boots."""
        return CellPrior(spread, noise.certainty, policy.prior_effect / sd)


def cell_of(shift: Shift, lam: float | Floats, ln_weight: float, prior: CellPrior) -> GaussianCell:
    """Integrate under one variance of the layout, or one for each kernel, in variances of a
    boot."""
    sums = shift.sums
    info, vector, square, ln_det = shift.information
    points, boots = len(sums.at), float(len(sums.level))
    # integrates the layout offset of each kernel; several variances give a column each
    mixed = np.eye(points) + lam * info
    both = np.linalg.solve(mixed, np.column_stack([info, vector]))
    matrix, g = both[:, :-1], both[:, -1]
    square -= lam * float(vector @ g) if isinstance(lam, float) else float(vector @ (lam * g))
    ln_det += float(np.linalg.slogdet(mixed)[1])
    gaps = points - 1
    prior_d = 1.0 / max(4.0, prior.effect**2)
    # Sums over the points after each gap: 1'G1, 1'Gh, h'Gh, 1'g, h'g with h = 1 after the gap.
    columns = matrix.sum(axis=0)
    b11, b12 = float(columns.sum()), np.cumsum(columns[::-1])[::-1][1:]
    # h_i'G h_j
    corner = np.cumsum(np.cumsum(matrix[::-1, ::-1], axis=0), axis=1)[::-1, ::-1][1:, 1:]
    b22 = corner.diagonal() + prior_d
    r1, r2 = float(g.sum()), np.cumsum(g[::-1])[::-1][1:]
    det = np.maximum(b11 * b22 - b12**2, 1e-300)
    low, effect = (b22 * r1 - b12 * r2) / det, (b11 * r2 - b12 * r1) / det
    q = np.append(square - low * r1 - effect * r2, square - r1 * r1 / b11)
    q = np.maximum(q, 0.0) + boots * SPREAD_FLOOR**2  # rounding: identical values are no proof
    a, b0 = prior.certainty + (boots - 1) / 2, prior.certainty * prior.spread**2
    ln_dets = ln_det + np.append(np.log(det / prior_d), math.log(b11))

    def likelihood(square: float, ln_dets: float) -> float:
        q = max(square, 0.0) + boots * SPREAD_FLOOR**2
        return -0.5 * ln_dets - a * math.log(b0 + q / 2)

    return GaussianCell(
        gradual=_gradual(
            (np.asarray(matrix), np.asarray(g), square, ln_det), shift.along, prior_d, likelihood
        ),
        ln_weight=ln_weight,
        ln_likelihood=-0.5 * ln_dets - a * np.log(b0 + q / 2),
        effect=np.append(effect, 0.0),
        low=np.append(low, r1 / b11),
        scale2=(b0 + q / 2) / a,
        df=2 * a,
        var=np.append(b11 / det, 0.0),
        lam=float(np.mean(lam)),
        two=_two_in_cell(
            b11,
            b12,
            corner + prior_d * np.eye(gaps),
            r1,
            r2,
            (square, ln_det, prior_d, boots, a, b0),
        )
        if gaps <= TWO_STEPS_MOST_GAPS and not shift.alone
        else np.empty(0),
    )


def _gradual(
    sums: tuple[Floats, Floats, float, float],
    along: Floats | None,
    prior_d: float,
    likelihood: Callable[[float, float], float],
) -> Gradual | None:
    """The marginal likelihood of a level that moves by D over the range in proportion to `along`,
    and of a random walk that moves as far.

    `sums`: matrix, vector, square, ln determinant.
    """
    if along is None:
        return None
    matrix, g, square, ln_det = sums
    ones = matrix.sum(axis=0)
    b11, b12 = float(ones.sum()), float(ones @ along)
    b22, r1, r2 = float(along @ matrix @ along) + prior_d, float(g.sum()), float(along @ g)
    det = max(b11 * b22 - b12**2, 1e-300)
    low, size = (b22 * r1 - b12 * r2) / det, (b11 * r2 - b12 * r1) / det
    ln_line = likelihood(square - low * r1 - size * r2, ln_det + math.log(det / prior_d))
    walk = np.minimum.outer(along, along) / prior_d
    mixed = np.eye(len(along)) + matrix @ walk
    both = np.linalg.solve(mixed, np.column_stack([ones, g]))
    c11, s1 = max(float(both[:, 0].sum()), 1e-300), float(both[:, 1].sum())
    left = square - float(g @ walk @ both[:, 1]) - s1 * s1 / c11
    dets = ln_det + float(np.linalg.slogdet(mixed)[1]) + math.log(c11)
    return Gradual(ln_line, likelihood(left, dets), size, b11 / det)


def _two_in_cell(
    b11: float,
    b12: Floats,
    corner: Floats,
    r1: float,
    r2: Floats,
    rest: tuple[float, float, float, float, float, float],
) -> Floats:
    """The marginal likelihood of two steps of independent size: a 3 by 3 system for each pair of
    gaps.
    """
    square, ln_det, prior_d, boots, a, b0 = rest
    i, j = gap_pairs(len(r2))
    system = np.empty((len(i), 3, 3))
    system[:, 0, 0] = b11
    system[:, 0, 1] = system[:, 1, 0] = b12[i]
    system[:, 0, 2] = system[:, 2, 0] = b12[j]
    system[:, 1, 1], system[:, 2, 2] = corner[i, i], corner[j, j]
    system[:, 1, 2] = system[:, 2, 1] = corner[i, j]
    right = np.column_stack([np.full(len(i), r1), r2[i], r2[j]])
    solved = np.linalg.solve(system, right[:, :, None])[:, :, 0] if len(i) else right
    q = np.maximum(square - (solved * right).sum(axis=1), 0.0) + boots * SPREAD_FLOOR**2
    ln_dets = ln_det + np.linalg.slogdet(system)[1] - 2.0 * math.log(prior_d)
    return np.asarray(-0.5 * ln_dets - a * np.log(b0 + q / 2))
