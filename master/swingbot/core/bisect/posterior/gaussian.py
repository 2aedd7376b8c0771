"""The posterior of the place of the step if all noise is Gaussian.

It is exact, for boots that share a shift: boot k of a paired testbox shifts all kernels equally,
and a testbox that wanders shifts boots that are close in time equally.

    y = mu + D * [after the step] + layout(kernel) + shift(k, or time) + boot

All but a grid of noise ratios is integrated in closed form (docs/statistics.md, "The posterior of a
bisection"). Everything here is on the effect scale: natural logs, or differences in units of the
level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.special import expit, logsumexp, stdtr

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior.step_posterior import (
    Posterior,
    creep_probability,
    gap_prior,
    may_creep,
    per_commit,
    seen_swing,
)
from swingbot.core.bisect.thresholds import (
    ODD_IMAGE_SD,
    ODD_IMAGES,
    ODD_SET,
    PAIRED_LAYOUT_FACTORS,
    SHIFT_SD,
    TESTBOX_SD,
    TWO_STEPS_MOST_GAPS,
    WANDER_BOOTS,
    WANDER_FACTORS,
    WANDER_SD,
    WANDERS_NOT_SEEN,
    WANDERS_SEEN,
    WANDERS_UNKNOWN,
    Policy,
)
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


def summarise(ev: Evidence) -> Sums:
    """Reduce each boot to one number: runs within an emulated boot differ systematically (the first
    is always the fastest), not by chance.
    """
    kernels = sorted({(place, b.layout) for place, b in zip(ev.places, ev.boots, strict=True)})
    index, ks = (
        {key: i for i, key in enumerate(kernels)},
        {k: i for i, k in enumerate(sorted({b.k for b in ev.boots}))},
    )
    level = np.array([ev.of(math.fsum(b.values) / len(b.values)) for b in ev.boots])
    centre = float(level.mean()) if len(level) else 0.0
    return Sums(
        at=np.array([p for p, _ in kernels], np.intp),
        point=np.array(
            [index[place, b.layout] for place, b in zip(ev.places, ev.boots, strict=True)], np.intp
        ),
        block=np.array([ks[b.k] for b in ev.boots], np.intp),
        weight=np.ones(len(level)),
        level=level - centre,
        centre=centre,
    )


def posterior(ev: Evidence, noise: NoisePrior, policy: Policy, *, min_effect: float) -> Posterior:
    """The posterior from paired boots, where boots of equal k share a shift.

    Needs boots of both ends.
    """
    sums = summarise(ev)
    sd, df = _pooled_noise(sums, noise)
    shift = _Shift(
        sums, (SHIFT_SD / sd) ** 2, along=may_creep(sums.at, ev.mass, policy.prior_creep)
    )
    cells = [
        _cell(shift, lam, math.log(w), max(noise.sd_boot, SPREAD_FLOOR), noise, sd, policy)
        for lam, w in _layouts(noise, sd)
    ]
    ln_prior = gap_prior(sums.at, ev.mass, policy)
    # (grid, gaps + 1), the last column is "none"
    ln = np.array([c.ln_weight + c.ln_likelihood for c in cells]) + ln_prior
    one = float(logsumexp(ln))
    two = _two_steps(sums, cells, ln_prior, one, policy)
    creep, crept = _creep(cells, one, two[0], policy)
    if policy.odd_images <= 0:
        post = _collect(sums, cells, np.exp(ln - one), ev.mass, min_effect, df, two)
        return replace(post, creep=creep, crept=crept)
    likeliest = int(np.argmax(logsumexp(ln, axis=1)))
    # the sets below use the weights of layouts that even images have
    share = float(logsumexp(ln[likeliest])) - one
    layout = cells[likeliest].lam, cells[likeliest].ln_weight - share
    odd = _with_odd_images(shift, ln_prior, layout, noise, sd, policy)
    prior = policy.odd_images
    ln = np.concatenate([ln + math.log1p(-prior), odd.ln + math.log(prior)])
    weight = np.exp(ln - float(logsumexp(ln)))
    post = _collect(sums, [*cells, *odd.cells], weight, ev.mass, min_effect, df, two)
    odd_images = float(weight[len(cells) :].sum())
    even = weight[: len(cells), :-1].sum(axis=0) / max(1.0 - odd_images, 1e-300)
    return replace(
        post,
        creep=creep,
        crept=crept,
        odd_images=odd_images,
        if_even=per_commit(sums.at, even, ev.mass),
    )


@dataclass(frozen=True, slots=True)
class _Odd:
    """Sets of kernels whose images are odd, and the ln weight of each gap under each set, given
    that some images are odd.
    """

    cells: list[_Cell]
    ln: Floats


def _with_odd_images(
    shift: _Shift,
    ln_prior: Floats,
    layout: tuple[float, float],
    noise: NoisePrior,
    sd: float,
    policy: Policy,
) -> _Odd:
    """Weigh each single kernel as the odd one, then each pair with the likeliest of these, and so
    on; other sets have negligible weight.
    """
    shift = _Shift(shift.sums, shift.kappa, alone=True)
    many = len(shift.sums.at)
    (base, ln_weight), off = layout, (ODD_IMAGE_SD / sd) ** 2
    prior = max(noise.sd_boot, SPREAD_FLOOR)
    gain = seen_swing([s for s, _ in ODD_IMAGES], policy, len(ln_prior))
    chosen: list[int] = []
    cells, lns = [], []
    for size in range(1, min(ODD_SET, many) + 1):
        of_shares = [
            math.log(w) + size * math.log(s) + (many - size) * math.log1p(-s) for s, w in ODD_IMAGES
        ]
        of_size = logsumexp(np.array(of_shares)[:, None] + gain, axis=0)
        best, likeliest = -math.inf, 0
        for i in range(many):
            if i in chosen:
                continue
            lam = np.full(many, base)
            lam[[*chosen, i]] += off
            cell = _cell(shift, lam, 0.0, prior, noise, sd, policy)
            ln = cell.ln_likelihood + ln_prior + ln_weight + of_size
            cells.append(cell)
            lns.append(ln)
            if (whole := float(logsumexp(ln))) > best:
                best, likeliest = whole, i
        chosen.append(likeliest)
    return _Odd(cells, np.array(lns))


@dataclass(frozen=True, slots=True)
class BootMeans:
    """Boots, each reduced to one number.

    A kernel is an image; a position has one for each layout in which it was built.
    """

    at: Indices  # kernel -> position
    kernel: Indices  # boot -> kernel
    level: Floats
    weight: Floats  # 1; less for a boot that is probably wild
    times: Floats  # seconds
    testbox: Indices  # testbox of the group
    spread: float  # sd of one boot
    prior: float  # sd of one boot as known before the bisection


def wandering(
    ev: Evidence, rows: BootMeans, noise: NoisePrior, policy: Policy, *, min_effect: float
) -> tuple[Posterior, float]:
    """The posterior given that the level of each testbox moves with time, and the probability that
    it moves.

    Each testbox of a group also has an offset of its own, which tells nothing about the step.
    """
    at, kernel, level, weight, times, sd, prior = (
        rows.at,
        rows.kernel,
        rows.level,
        rows.weight,
        rows.times,
        rows.spread,
        rows.prior,
    )
    centre = float(np.median(level))
    sums = Sums(at, kernel, np.zeros(len(level), np.intp), weight, level - centre, centre)
    ln_prior = gap_prior(at, ev.mass, policy)
    lams, along = _layouts(noise, sd), may_creep(at, ev.mass, policy.prior_creep)
    cells, still = [], []
    for factor, seconds, share in _wanders(times, noise, sd):
        shift = _Shift(sums, factor**2, _together(rows, factor**2, seconds), along)
        cells += [
            _cell(shift, lam, math.log(share * w), prior, noise, sd, policy) for lam, w in lams
        ]
        still += [factor == 0.0] * len(lams)
    ln = np.array([c.ln_weight + c.ln_likelihood for c in cells]) + ln_prior
    weights = np.exp(ln - float(logsumexp(ln)))
    wander = float(weights[~np.array(still)].sum())
    # only this function judges a group
    moves = np.flatnonzero(~np.array(still)) if rows.testbox.max() == 0 else np.arange(len(still))
    cells = [cells[i] for i in moves]
    one = float(logsumexp(ln[moves]))
    two = _two_steps(sums, cells, ln_prior, one, policy)
    df = max(len(level) - len(at), 0)
    post = _collect(sums, cells, np.exp(ln[moves] - one), ev.mass, min_effect, df, two)
    creep, crept = _creep(cells, one, two[0], policy)
    return replace(post, creep=creep, crept=crept), wander


def _wanders(times: Floats, noise: NoisePrior, sd: float) -> list[tuple[float, float, float]]:
    """(sd of the wandering in sd of a boot, its time constant in seconds, prior). The first row is
    "the level does not move".
    """
    gap = float(np.median(np.diff(np.sort(times)))) if len(times) > 1 else 1.0
    usual = max(gap, 1e-3)
    if noise.sd_day:
        seconds = (
            (noise.drift_seconds,)
            if noise.drift_seconds > 0
            else tuple(b * usual for b in WANDER_BOOTS)
        )
        sizes = tuple((f * noise.sd_day / sd, w) for f, w in WANDER_FACTORS)
        moving = WANDERS_SEEN
    else:
        seconds, sizes = tuple(b * usual for b in WANDER_BOOTS), WANDER_SD
        moving = WANDERS_UNKNOWN if noise.sd_day is None else WANDERS_NOT_SEEN
    return [(0.0, 1.0, 1.0 - moving)] + [
        (size, t, moving * w / len(seconds)) for t in seconds for size, w in sizes
    ]


def _together(rows: BootMeans, kappa: float, seconds: float) -> Floats | None:
    """Covariance of the boots of one testbox, in units of the variance of one boot.

    It is the offset of the testbox in its group, and an Ornstein-Uhlenbeck process in time.
    """
    group = rows.testbox.max() > 0
    if kappa == 0 and not group:
        return None
    apart = np.abs(rows.times[:, None] - rows.times[None, :]) / seconds
    offset = (TESTBOX_SD / rows.spread) ** 2 if group else 0.0
    return np.where(
        rows.testbox[:, None] == rows.testbox[None, :], offset + kappa * np.exp(-apart), 0.0
    )


class _Shift:
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
        """The result of `_information`; it does not depend on the layout, so all cells share it."""
        if self.together is None:
            return _information(self.sums, self.kappa)
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
class _Cell:
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
    # (pairs of gaps,): ln likelihood of a step in each of the two, in the order of `_pairs`
    two: Floats
    gradual: _Gradual | None = None  # None: too few positions to tell a line from a step


@dataclass(frozen=True, slots=True)
class _Gradual:
    """The level moves with the commits: a line over the range, or a random walk."""

    ln_line: float
    ln_walk: float
    size: float  # of the line, over the whole range
    var: float


def _layouts(noise: NoisePrior, sd: float) -> tuple[tuple[float, float], ...]:
    """(variance of the layout in variances of a boot, weight)."""
    return (
        tuple(((f * noise.sd_layout / sd) ** 2, w) for f, w in PAIRED_LAYOUT_FACTORS)
        if noise.sd_layout > 0
        else ((0.0, 1.0),)
    )


def _pooled_noise(sums: Sums, noise: NoisePrior) -> tuple[float, float]:
    """sd of a boot from its replicates and the prior, and the degrees of freedom of the
    replicates.
    """
    info, vector, square, _ = _information(sums, 1e12)
    squares = max(
        square - float(vector @ np.linalg.pinv(info, rcond=1e-9, hermitian=True) @ vector), 0.0
    )
    df = max(len(sums.level) - len(np.unique(sums.block)) - (len(sums.at) - 1), 0)
    a2 = 2.0 * noise.certainty
    return max(
        math.sqrt((a2 * max(noise.sd_boot, SPREAD_FLOOR) ** 2 + squares) / (a2 + df)), SPREAD_FLOOR
    ), df


def _information(sums: Sums, kappa: float) -> tuple[Floats, Floats, float, float]:
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


def _cell(
    shift: _Shift,
    lam: float | Floats,
    ln_weight: float,
    prior: float,
    noise: NoisePrior,
    sd: float,
    policy: Policy,
) -> _Cell:
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
    prior_d = 1.0 / max(4.0, (policy.prior_effect / sd) ** 2)
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
    a, b0 = noise.certainty + (boots - 1) / 2, noise.certainty * prior**2
    ln_dets = ln_det + np.append(np.log(det / prior_d), math.log(b11))

    def likelihood(square: float, ln_dets: float) -> float:
        q = max(square, 0.0) + boots * SPREAD_FLOOR**2
        return -0.5 * ln_dets - a * math.log(b0 + q / 2)

    return _Cell(
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
) -> _Gradual | None:
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
    return _Gradual(ln_line, likelihood(left, dets), size, b11 / det)


def _creep(
    cells: list[_Cell], one: float, two: float, policy: Policy
) -> tuple[float, tuple[float, float]]:
    """P(creep) against one step, two, many or none, and (mean, variance) of its size."""
    known = [(c, c.gradual) for c in cells if c.gradual is not None]
    if not known:
        return 0.0, (0.0, 0.0)
    many = float(logsumexp([c.ln_weight + gradual.ln_walk for c, gradual in known]))
    lines = np.array([c.ln_weight + gradual.ln_line for c, gradual in known])
    whole = float(logsumexp(lines))
    weight = np.exp(lines - whole)
    sizes = np.array([gradual.size for _, gradual in known])
    # variance of a boot under the likeliest step, or under none
    scale2 = np.array([float(c.scale2.min()) for c, _ in known])
    mean = float(weight @ sizes)
    var = float(
        weight @ (scale2 * np.array([gradual.var for _, gradual in known]) + (sizes - mean) ** 2)
    )
    return creep_probability(whole, many, one, two, policy.prior_creep), (mean, var)


def _pairs(gaps: int) -> tuple[Indices, Indices]:
    return np.triu_indices(gaps, 1)


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
    i, j = _pairs(len(r2))
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


def _two_steps(
    sums: Sums, cells: list[_Cell], ln_prior: Floats, one: float, policy: Policy
) -> tuple[float, tuple[int, int] | None]:
    """P(two steps) against one or none, and the first and last measured position between the
    likeliest pair.
    """
    i, j = _pairs(len(sums.at) - 1)
    if not len(i) or not len(cells[0].two) or policy.prior_two <= 0:
        return 0.0, None
    ln_pair = ln_prior[i] + ln_prior[j] + math.log(2.0)
    ln = (
        logsumexp(np.array([c.ln_weight + c.two for c in cells]), axis=0)
        + ln_pair
        + math.log(policy.prior_two / (1 - policy.prior_two))
    )
    best = int(np.argmax(ln))
    return float(expit(logsumexp(ln) - one)), (int(sums.at[i[best] + 1]), int(sums.at[j[best]]))


def _collect(
    sums: Sums,
    cells: list[_Cell],
    weight: Floats,
    mass: Floats,
    min_effect: float,
    df: float,
    two: tuple[float, tuple[int, int] | None],
) -> Posterior:
    scale2, effect, low, var = (
        np.array([getattr(c, name) for c in cells]) for name in ("scale2", "effect", "low", "var")
    )
    lam = np.array([c.lam for c in cells])[:, None]
    t_df = np.array([c.df for c in cells])[:, None]
    change, none = weight[:, :-1], float(weight[:, -1].sum())
    given = change / max(change.sum(), 1e-300)
    sd = np.sqrt(scale2 * var)[:, :-1]
    small = stdtr(t_df, (min_effect - effect[:, :-1]) / sd) - stdtr(
        t_df, (-min_effect - effect[:, :-1]) / sd
    )
    mean = float((given * effect[:, :-1]).sum())
    # mu is confounded with the shifts; the reference level of the points is known as well as the
    # difference of the ends
    level_var = float((given * (scale2 * var / 2)[:, :-1]).sum())
    boot_var = float((weight * scale2).sum())
    return Posterior(
        commit=per_commit(sums.at, change.sum(axis=0), mass),
        none=none,
        none_or_small=none + float((change * small).sum()),
        effect=mean,
        effect_var=float((given * (sd**2 + (effect[:, :-1] - mean) ** 2)).sum()),
        low=sums.centre + float((given * low[:, :-1]).sum()),
        low_var=level_var,
        high_var=level_var,
        sd_layout=math.sqrt(float((weight * scale2 * lam).sum())),
        boot_var=boot_var,
        two=two[0],
        middle=two[1],
        df=df,
    )
