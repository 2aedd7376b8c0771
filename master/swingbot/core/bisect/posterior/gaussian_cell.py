"""The likelihood of boots if all noise is Gaussian, under one combination of noise ratios.

    y = mu + D * [after the step] + layout(kernel) + shift + boot

The shift, the levels and the size of the step are integrated in closed form (docs/statistics.md,
"The posterior of a bisection"). Everything is on the effect scale: natural logs, or differences in
units of the level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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


def informations(shifts: Sequence[Shift]) -> list[tuple[Floats, Floats, float, float]]:
    """Shift -> as of `information_of`; it does not depend on the layout, so cells share it."""
    found: dict[int, tuple[Floats, Floats, float, float]] = {}
    covariances: dict[int, Floats] = {}
    for shift in shifts:
        if shift.together is not None:
            covariances[id(shift)] = shift.together
        elif id(shift) not in found:
            found[id(shift)] = information_of(shift.sums, shift.kappa)
    if covariances:
        solved = _correlated(shifts[0].sums, np.array(list(covariances.values())))
        found |= dict(zip(covariances, solved, strict=True))
    return [found[id(shift)] for shift in shifts]


def _correlated(sums: Sums, together: Floats) -> list[tuple[Floats, Floats, float, float]]:
    """As of `information_of` for each covariance that boots have beside their own variance."""
    boots, points = len(sums.level), len(sums.at)
    covariance = together + np.diag(1.0 / sums.weight)
    shares = np.zeros((boots, points + 1))
    shares[np.arange(boots), sums.point] = 1.0
    shares[:, -1] = sums.level
    factor = np.linalg.cholesky(covariance)
    half = np.linalg.solve(factor, np.broadcast_to(shares, (len(together), *shares.shape)))
    whole = half.transpose(0, 2, 1) @ half
    ln_dets = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
    ln_dets += float(np.log(sums.weight).sum())
    return [
        (each[:-1, :-1], each[:-1, -1], float(each[-1, -1]), float(ln_det))
        for each, ln_det in zip(whole, ln_dets, strict=True)
    ]


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


def cells_of(
    shifts: Sequence[Shift], lams: Floats, ln_weights: Sequence[float], prior: CellPrior
) -> list[GaussianCell]:
    """Integrate under each shift, all of the same boots and kernels, and the variances of the
    layout that belong to it, (cell, kernel) or (cell, 1), in variances of a boot.

    Arrays are over cells first: a step of a bisection has dozens, each of a few small matrices.
    """
    sums, along, alone = shifts[0].sums, shifts[0].along, shifts[0].alone
    given = informations(shifts)
    info, vector, square, ln_det = (np.array(part) for part in zip(*given, strict=True))
    points, boots = len(sums.at), float(len(sums.level))
    # integrates the layout offset of each kernel
    mixed = np.eye(points) + lams[:, None, :] * info
    both = np.linalg.solve(mixed, np.concatenate([info, vector[:, :, None]], axis=2))
    matrix, g = both[:, :, :-1], both[:, :, -1]
    square = square - (vector * lams * g).sum(axis=1)
    ln_det = ln_det + np.linalg.slogdet(mixed)[1]
    gaps = points - 1
    prior_d = 1.0 / max(4.0, prior.effect**2)
    # Sums over the points after each gap: 1'G1, 1'Gh, h'Gh, 1'g, h'g with h = 1 after the gap.
    columns = matrix.sum(axis=1)
    b11, b12 = columns.sum(axis=1, keepdims=True), _from_behind(columns)[:, 1:]
    # h_i'G h_j
    corner = _from_behind(_from_behind(matrix, 1), 2)[:, 1:, 1:]
    b22 = corner.diagonal(axis1=1, axis2=2) + prior_d
    r1, r2 = g.sum(axis=1, keepdims=True), _from_behind(g)[:, 1:]
    det = np.maximum(b11 * b22 - b12**2, 1e-300)
    low, effect = (b22 * r1 - b12 * r2) / det, (b11 * r2 - b12 * r1) / det
    of_boots = OfBoots(boots, prior.certainty + (boots - 1) / 2, prior.certainty * prior.spread**2)
    squares = square[:, None] - np.hstack([low * r1 + effect * r2, r1 * r1 / b11])
    ln_dets = ln_det[:, None] + np.hstack([np.log(det / prior_d), np.log(b11)])
    ln_likelihood = of_boots.ln_likelihood(squares, ln_dets)
    scale2, zero = of_boots.scale2(squares), np.zeros((len(shifts), 1))
    effect, low, var = (
        np.hstack([effect, zero]),
        np.hstack([low, r1 / b11]),
        np.hstack([b11 / det, zero]),
    )
    two: Sequence[Floats] | Floats = [np.empty(0)] * len(shifts)
    if gaps <= TWO_STEPS_MOST_GAPS and not alone:
        inner = corner + prior_d * np.eye(gaps)
        two = _two_in_cells((b11, b12, inner, r1, r2), square, ln_det, prior_d, of_boots)
    gradual: Sequence[Gradual | None] = [None] * len(shifts)
    if along is not None:
        gradual = _gradual((matrix, g, square, ln_det), along, prior_d, of_boots)
    return [
        GaussianCell(
            gradual=gradual[i],
            ln_weight=ln_weights[i],
            ln_likelihood=ln_likelihood[i],
            effect=effect[i],
            low=low[i],
            scale2=scale2[i],
            df=2 * of_boots.shape,
            var=var[i],
            lam=float(np.mean(lams[i])),
            two=two[i],
        )
        for i in range(len(shifts))
    ]


def _from_behind(values: Floats, axis: int = 1) -> Floats:
    """Running sums from the last entry to the first."""
    return np.flip(np.cumsum(np.flip(values, axis), axis=axis), axis)


@dataclass(frozen=True, slots=True)
class OfBoots:
    """The prior of the variance of a boot, inverse gamma with `shape` after the boots, and their
    number."""

    boots: float
    shape: float
    scale: float

    def _scale(self, square: Floats) -> Floats:
        # identical values may be rounded, so they do not prove that there is no noise
        return self.scale + (np.maximum(square, 0.0) + self.boots * SPREAD_FLOOR**2) / 2

    def ln_likelihood(self, square: Floats, ln_dets: Floats) -> Floats:
        """Marginal likelihoods, from what is left of the sum of squares and the determinants."""
        return np.asarray(-0.5 * ln_dets - self.shape * np.log(self._scale(square)))

    def scale2(self, square: Floats) -> Floats:
        """Approximate posterior mean of the variance of a boot."""
        return self._scale(square) / self.shape


def _gradual(
    sums: tuple[Floats, Floats, Floats, Floats], along: Floats, prior_d: float, of_boots: OfBoots
) -> list[Gradual]:
    """The marginal likelihood of a level that moves by D over the range in proportion to `along`,
    and of a random walk that moves as far.

    `sums`: matrix, vector, square, ln determinant of each cell.
    """
    matrix, g, square, ln_det = sums
    ones = matrix.sum(axis=1)
    b11, b12 = ones.sum(axis=1), ones @ along
    b22, r1, r2 = (matrix @ along) @ along + prior_d, g.sum(axis=1), g @ along
    det = np.maximum(b11 * b22 - b12**2, 1e-300)
    low, size = (b22 * r1 - b12 * r2) / det, (b11 * r2 - b12 * r1) / det
    ln_line = of_boots.ln_likelihood(square - low * r1 - size * r2, ln_det + np.log(det / prior_d))
    walk = np.minimum.outer(along, along) / prior_d
    mixed = np.eye(len(along)) + matrix @ walk
    both = np.linalg.solve(mixed, np.stack([ones, g], axis=2))
    c11, s1 = np.maximum(both[:, :, 0].sum(axis=1), 1e-300), both[:, :, 1].sum(axis=1)
    left = square - ((g @ walk) * both[:, :, 1]).sum(axis=1) - s1 * s1 / c11
    ln_walk = of_boots.ln_likelihood(left, ln_det + np.linalg.slogdet(mixed)[1] + np.log(c11))
    each = zip(ln_line.tolist(), ln_walk.tolist(), size.tolist(), (b11 / det).tolist(), strict=True)
    return [Gradual(*of_cell) for of_cell in each]


def _two_in_cells(
    sums: tuple[Floats, Floats, Floats, Floats, Floats],
    square: Floats,
    ln_det: Floats,
    prior_d: float,
    of_boots: OfBoots,
) -> Floats:
    """(cell, pair of gaps): the marginal likelihood of two steps of independent size, a 3 by 3
    system each. `sums`: 1'G1, 1'Gh, h'Gh and its prior, 1'g, h'g.
    """
    b11, b12, corner, r1, r2 = sums
    i, j = gap_pairs(r2.shape[1])
    system = np.empty((len(r2), len(i), 3, 3))
    system[:, :, 0, 0] = b11
    system[:, :, 0, 1] = system[:, :, 1, 0] = b12[:, i]
    system[:, :, 0, 2] = system[:, :, 2, 0] = b12[:, j]
    system[:, :, 1, 1], system[:, :, 2, 2] = corner[:, i, i], corner[:, j, j]
    system[:, :, 1, 2] = system[:, :, 2, 1] = corner[:, i, j]
    right = np.stack([np.broadcast_to(r1, (len(r2), len(i))), r2[:, i], r2[:, j]], axis=2)
    solved = np.linalg.solve(system, right[..., None])[..., 0]
    ln_dets = ln_det[:, None] + np.linalg.slogdet(system)[1] - 2.0 * math.log(prior_d)
    return of_boots.ln_likelihood(square[:, None] - (solved * right).sum(axis=2), ln_dets)
