"""The posterior of the place of the step if boots may be wild.

It is exact up to a grid, for testboxes whose boots are not paired.

    y = mu + D * [after the step] + layout(kernel) + boot + run

Levels are points of a grid, which allows any noise: the likelihood of a boot is a function of the
level; that of a kernel is the product over its boots, convolved with the layout. Points before the
step share mu, those after it mu + D. Spreads and the share of wild boots are summed over. Each
hypothesis is a product of running sums (docs/statistics.md, "The posterior of a bisection").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior import gradual
from swingbot.core.bisect.posterior.gaps import (
    GapWeights,
    TwoSteps,
    gap_pairs,
    gap_prior,
    seen_swing,
    two_steps,
    weighs_two_steps,
)
from swingbot.core.bisect.posterior.gaussian_cell import Sums
from swingbot.core.bisect.posterior.log_sums import exp_below, ln_sum
from swingbot.core.bisect.posterior.mixture_likelihood import (
    Likelihoods,
    floored,
    level_grid,
    position_likelihoods,
)
from swingbot.core.bisect.posterior.mixture_noise import (
    BootColumns,
    Combinations,
    Theta,
    boot_columns,
    thetas_of,
)
from swingbot.core.bisect.posterior.mixture_sides import (
    Coupling,
    Sides,
    coupling,
    effect_density,
    sides_of,
)
from swingbot.core.bisect.posterior.step_posterior import Hypotheses, Posterior, blend
from swingbot.core.bisect.posterior.wandering import wandering
from swingbot.core.bisect.thresholds import (
    ODD_IMAGES_SEEN,
    WANDER_MOST_BOOTS,
    WILD_P,
    WILD_WEIGHT,
    Policy,
)
from swingbot.core.model.noise import NoisePrior

_CREEP_NOISES: Final = 8  # combinations of noise in which a creep is weighed
_FAR: Final = 60.0  # nats below the best: too unlikely to be considered


@dataclass(frozen=True, slots=True)
class _Hypotheses:
    """Arrays over (pair, gap between neighbouring measured positions); the last gap stands for "no
    change".
    """

    ln: Floats
    low: Floats  # E[mu]
    low_var: Floats
    high: Floats  # E[mu + D]
    high_var: Floats


def posterior(ev: Evidence, noise: NoisePrior, policy: Policy, *, min_effect: float) -> Posterior:
    """The posterior from boots that are not paired. Needs boots of both ends."""
    columns = boot_columns(ev, noise)
    wanted = thetas_of(columns, noise, policy, rebuilds=ev.layout_cost is not None)
    grid = level_grid(columns, wanted)
    of = floored(wanted, grid, len(columns.x))
    positions = position_likelihoods(columns, of, grid)
    coupled = coupling(grid, policy.prior_effect, columns.bound)
    sides = sides_of(positions, coupled)
    pairs = _Pairs(of, _possible(sides, of))
    ln_prior = gap_prior(columns.at, ev.mass, policy)
    hypotheses = _hypotheses(sides, pairs, coupled)
    ln = hypotheses.ln + ln_prior + pairs.ln_prior[:, None]
    ln += seen_swing(of.thetas.odd[pairs.before], policy, len(ln_prior))
    ln_one = float(ln_sum(ln))
    of_pairs = np.where(pairs.equal, ln_sum(ln, axis=1), -np.inf)
    best = int(np.argmax(of_pairs))
    at_best = int(pairs.before[best])
    theta = of.thetas.each[at_best]
    two = TwoSteps(0.0, None)
    if weighs_two_steps(len(columns.at) - 1, policy):
        ln_pairs = _ln_gap_pairs(np.array([p.of(at_best) for p in positions]), coupled)
        ln_best = float(of_pairs[best] - pairs.ln_prior[best])
        two = two_steps(ln_pairs, ln_prior, ln_best, columns.at, policy)
    along = gradual.may_creep(columns.at, ev.mass, policy.prior_creep)
    creep, crept = (0.0, (0.0, 0.0))
    if along is not None:
        ranked = [
            (float(of_pairs[i]), int(pairs.before[i]), float(pairs.ln_prior[i]))
            for i in np.argsort(-of_pairs, kind="stable")[:_CREEP_NOISES]
        ]
        creep, crept = _creep(positions, coupled, ranked, along, two.p, policy)
    weights = GapWeights(columns.at, ev.mass, np.exp(ln - ln_one))
    still = _collect(columns, pairs, hypotheses, weights, min_effect, two)
    if still.odd_images < ODD_IMAGES_SEEN:
        still = replace(still, sd_layout_if_even=_sd_layout_of_even(pairs, weights))
    behind = still.behind()[columns.at[columns.point][columns.node]]
    levels = ((still.low, 1.0 - behind), (still.low + still.effect, behind))
    wild, mode = _wild(columns, theta, levels), tuple[float, ...]()
    if theta.tight:
        mode = tuple(theta.offset if p > WILD_P else 0.0 for p in wild)
        wild = (0.0,) * len(wild)
    still = replace(
        still,
        wild=wild,
        mode=mode,
        far_if_none=_far_if_none(columns, pairs, hypotheses, ln[:, -1]),
        creep=creep,
        crept=crept,
    )
    return _moving(
        ev,
        columns,
        still,
        noise,
        policy,
        min_effect,
    )


def _moving(
    ev: Evidence,
    columns: BootColumns,
    still: Posterior,
    noise: NoisePrior,
    policy: Policy,
    min_effect: float,
) -> Posterior:
    """The posterior that allows for a testbox that wandered meanwhile; for a group of testboxes,
    for their offsets.
    """
    boots = ev.boots
    group = any(b.testbox for b in boots)
    if len(boots) > WANDER_MOST_BOOTS or (any(b.at is None for b in boots) and not group):
        return still
    level = columns.x - np.array(still.mode) if still.mode else columns.x
    centre = float(np.median(level))
    sums = Sums(
        at=columns.at[columns.point],
        point=columns.node,
        block=np.zeros(len(level), np.intp),
        weight=np.array([1.0 if p < WILD_P or group else WILD_WEIGHT for p in still.wild]),
        level=level - centre,
        centre=centre,
    )
    moving, wander = wandering(
        ev,
        sums,
        noise,
        policy,
        spread=columns.spread,
        prior_spread=columns.prior,
        min_effect=min_effect,
    )
    return (
        replace(
            moving, wander=wander, wild=still.wild, mode=still.mode, far_if_none=still.far_if_none
        )
        if group
        else blend(still, moving, wander)
    )


def _far_if_none(
    columns: BootColumns, pairs: _Pairs, hypotheses: _Hypotheses, ln: Floats
) -> tuple[float, ...]:
    """Boot -> how far it is from the level if it is wild, or of the second mode, and there is no
    step; else 0. `ln`: weight of each pair without a step.
    """
    best = int(np.argmax(ln))
    theta, level = pairs.of.thetas.each[pairs.before[best]], float(hypotheses.low[best, -1])
    far = np.array(_wild(columns, theta, ((level, np.ones(len(columns.x))),))) > WILD_P
    off = theta.offset if theta.tight else columns.x - level
    return tuple(np.where(far, off, 0.0).tolist())


def _wild(
    columns: BootColumns, theta: Theta, levels: Sequence[tuple[float, Floats]]
) -> tuple[float, ...]:
    """Boot -> P(wild). `levels`: each with the probability, by boot, that the boot has it."""
    off = math.sqrt(theta.spread**2 + theta.layout_var)
    clean, wild = np.zeros(len(columns.x)), np.zeros(len(columns.x))
    at_bound = columns.at_bound
    sign = -1.0 if columns.bound is not None and columns.bound.upper else 1.0
    for level, share in levels:
        z = (columns.x - level) / off
        of_clean = np.exp(-(z**2) / 2)
        of_wild = np.exp(-((z - theta.apart) ** 2) / (2 * theta.width**2))
        of_clean[at_bound] = ndtr(sign * z[at_bound])
        of_wild[at_bound] = theta.width * ndtr(sign * (z[at_bound] - theta.apart) / theta.width)
        clean += share * (1.0 - theta.wild) * of_clean
        wild += share * theta.wild / theta.width * of_wild
    return tuple(float(p) for p in wild / np.maximum(wild + clean, 1e-300))


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Pairs of combinations of noise that are considered, as columns."""

    of: Combinations
    which: Indices

    @property
    def before(self) -> Indices:
        """Pair -> theta before the step."""
        return self.of.before[self.which]

    @property
    def after(self) -> Indices:
        return self.of.after[self.which]

    @property
    def ln_prior(self) -> Floats:
        return self.of.ln_prior[self.which]

    @property
    def equal(self) -> NDArray[np.bool_]:
        """Whether noise is the same before and after the step."""
        return np.asarray(self.of.equal[self.which])

    @property
    def even(self) -> NDArray[np.bool_]:
        """Whether no image is odd."""
        return np.asarray(self.of.thetas.odd[self.before] == 0.0)


def _possible(sides: Sides, of: Combinations) -> Indices:
    """The pairs whose weight can matter.

    The best fit of a pair, over all gaps and both levels, bounds its weight. The weight of the best
    pair is below its bound by logarithms of the number of gaps, of pairs of levels and of priors,
    together less than 40. Two steps and a creep are weighed under equal spreads only, so the best
    of those pairs stay even if none can matter (for instance, with a cap that only one side
    reaches).
    """
    best = (sides.left_top[of.before] + sides.right_top[of.after]).max(axis=1)
    fits = best + of.ln_prior
    near = fits >= fits.max() - _FAR
    if not near[of.equal].any():
        near |= of.equal & (fits >= fits[of.equal].max() - _FAR)
    return np.flatnonzero(near)


def _hypotheses(sides: Sides, pairs: _Pairs, coupled: Coupling) -> _Hypotheses:
    i, j = pairs.before, pairs.after
    left, right = (np.asarray(side, np.float64) for side in (sides.left[i], sides.right[j]))
    # power of the level x (pair, gap)
    low = np.einsum("tgcp,tgc->ptg", left, coupled.stepped(right[..., 0]))
    high = np.einsum("tgcp,tgc->ptg", right, coupled.stepped(left[..., 0]))
    with np.errstate(divide="ignore"):
        ln = np.log(low[0]) + sides.left_top[i] + sides.right_top[j]
    none, none_top = _scaled(sides.whole)
    none_top = none_top[:, 0] + sides.whole_top
    none = (none @ coupled.powers).T[:, i, None]
    with np.errstate(divide="ignore"):
        ln_none = np.log(none[0]) + none_top[i, None] - math.log(coupled.step)
    # a change of the spread alone is a change
    ln_none[~pairs.equal] = -np.inf
    level, level_var = coupled.moments(none)
    together = [
        np.concatenate(pair, axis=1)
        for pair in zip(
            (ln, *coupled.moments(low), *coupled.moments(high)),
            (ln_none, level, level_var, level, level_var),
            strict=True,
        )
    ]
    return _Hypotheses(*together)


def _scaled(ln: Floats) -> tuple[Floats, Floats]:
    """Likelihoods relative to the largest of their row, and its logarithm."""
    top = ln.max(axis=1, keepdims=True)
    return exp_below(ln - top), top


def _ln_gap_pairs(points: Floats, coupled: Coupling) -> Floats:
    """ln likelihood of a step in each of two gaps, in the order of `gap_pairs`, under one theta."""
    before = np.cumsum(points, axis=0)
    left, left_top = _scaled(before[:-1])
    right, right_top = _scaled(before[-1:] - before[:-1])
    from_left, from_right = (side @ coupled.stepped_levels for side in (left, right))
    i, j = gap_pairs(len(points) - 1)
    with np.errstate(divide="ignore"):
        middle = before[j] - before[i] + np.log(from_left)[i] + np.log(from_right)[j]
    ln = ln_sum(middle, axis=1) + left_top[i, 0] + right_top[j, 0] + math.log(coupled.step)
    return np.asarray(ln)


def _creep(
    positions: Sequence[Likelihoods],
    coupled: Coupling,
    ranked: Sequence[tuple[float, int, float]],
    along: Floats,
    two: float,
    policy: Policy,
) -> tuple[float, tuple[float, float]]:
    """P(creep) against one step, two, many or none, and (mean, variance) of its size.

    `ranked`: ln weight of one step or none, theta and ln prior of the combinations of noise, the
    likeliest first. `two`: P(two steps).
    """
    likely = [each for each in ranked if math.isfinite(each[0])]  # equal spreads
    thetas, ln_prior = [theta for _, theta, _ in likely], np.array([ln for _, _, ln in likely])
    points = np.array([p.below[thetas] + p.top[thetas, None] for p in positions])
    grid = gradual.Grid(points.transpose(1, 0, 2), coupled.levels, coupled.stepped_levels)
    many = ln_prior + gradual.many_steps(grid, np.diff(along))
    near = gradual.Lines.near(grid, along)
    line = gradual.line(grid, along, near, effect_density(near.sizes, policy.prior_effect))
    lines = line.ln + ln_prior
    best = int(np.argmax(lines))
    ln_one = float(ln_sum(np.array([ln for ln, _, _ in likely])))
    p = gradual.creep_probability(lines.tolist(), many.tolist(), ln_one, two, policy.prior_creep)
    return p, (float(line.size[best]), float(line.var[best]))


def _collect(
    columns: BootColumns,
    pairs: _Pairs,
    hypotheses: _Hypotheses,
    weights: GapWeights,
    min_effect: float,
    two: TwoSteps,
) -> Posterior:
    effect, var = (
        (hypotheses.high - hypotheses.low)[:, :-1],
        (hypotheses.high_var + hypotheses.low_var)[:, :-1],
    )
    sd = np.sqrt(var)
    small = ndtr((min_effect - effect) / sd) - ndtr((-min_effect - effect) / sd)
    mean, effect_var = weights.moments(effect, var)
    per_theta = weights.of_noise
    noise = pairs.of.thetas
    spread2 = (noise.boot_vars[pairs.before] + noise.boot_vars[pairs.after]) / 2.0
    layout2 = float((per_theta * noise.layout_vars[pairs.before]).sum())
    even = pairs.even
    odd_images, if_even, if_odd = weights.by_images(even)
    # for the variance of the levels: boots do not show whether the image that they share is odd
    counted = even if odd_images < ODD_IMAGES_SEEN else np.ones(len(even), bool)
    change = weights.change[counted]
    of_levels = change / max(float(change.sum()), 1e-300)
    return Posterior(
        commit=weights.commit(),
        none=weights.none,
        none_or_small=weights.none + float((weights.change * small).sum()),
        effect=mean,
        effect_var=effect_var,
        low=weights.mean(hypotheses.low[:, :-1]),
        low_var=float((of_levels * hypotheses.low_var[counted, :-1]).sum()),
        high_var=float((of_levels * hypotheses.high_var[counted, :-1]).sum()),
        sd_layout=math.sqrt(layout2),
        boot_var=float((per_theta * spread2).sum()),
        two=two.p,
        middle=two.middle,
        df=columns.df,
        hypotheses=_over_thetas(columns.at, hypotheses, weights.weight),
        odd_images=odd_images,
        noisier=_noisier(pairs, per_theta),
        if_even=if_even,
        if_odd=if_odd,
    )


def _sd_layout_of_even(pairs: _Pairs, weights: GapWeights) -> float:
    """Return the layout spread given that no image is odd.

    P(odd images) is part of the weight of each commit already. If the spread included it as well, a
    small P would hide every step smaller than the offset of an odd image, whatever is booted.
    """
    likely = weights.of_noise[pairs.even]
    layout2 = pairs.of.thetas.layouts[pairs.before[pairs.even]] ** 2
    return math.sqrt(float((likely * layout2).sum()) / max(float(likely.sum()), 1e-300))


def _noisier(pairs: _Pairs, per_theta: Floats) -> tuple[float, float]:
    """P(the step changes the spread), and the factor if it does."""
    spreads = pairs.of.thetas.spreads
    ratio = np.log(spreads[pairs.after] / spreads[pairs.before])
    unequal = ~pairs.equal
    p = float(per_theta[unequal].sum())
    return p, math.exp(float((per_theta * ratio)[unequal].sum()) / max(p, 1e-300))


def _over_thetas(at: Indices, hypotheses: _Hypotheses, weight: Floats) -> Hypotheses:
    """The hypotheses, averaged over the thetas."""
    total = weight.sum(axis=0)
    share = weight / np.maximum(total, 1e-300)

    def moments(mean: Floats, var: Floats) -> tuple[Floats, Floats]:
        middle = (share * mean).sum(axis=0)
        return middle, (share * (var + (mean - middle) ** 2)).sum(axis=0)

    return Hypotheses(
        at,
        total,
        *moments(hypotheses.low, hypotheses.low_var),
        *moments(hypotheses.high, hypotheses.high_var),
    )
