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
from swingbot.core.bisect.posterior.mixture_likelihood import floored, level_grid, point_likelihoods
from swingbot.core.bisect.posterior.mixture_noise import (
    BootColumns,
    Theta,
    ThetaPair,
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

_CREEP_NOISES: Final = 4  # combinations of noise in which a creep is weighed
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
    thetas, pairs = thetas_of(columns, noise, policy, rebuilds=ev.layout_cost is not None)
    levels = level_grid(columns, thetas)
    thetas = floored(thetas, levels, columns)
    points = point_likelihoods(columns, thetas, levels)
    coupled = coupling(levels, policy)
    sides = sides_of(points, coupled)
    pairs = _possible(sides, pairs)
    ln_prior = gap_prior(columns.at, ev.mass, policy)
    hypotheses = _hypotheses(sides, pairs, coupled)
    ln = hypotheses.ln + ln_prior + np.array([p.ln_prior for p in pairs])[:, None]
    ln += seen_swing([thetas[p.before].odd for p in pairs], policy, len(ln_prior))
    ln_one = float(ln_sum(ln))
    of_pairs = np.where([p.equal for p in pairs], ln_sum(ln, axis=1), -np.inf)
    best = int(np.argmax(of_pairs))
    theta = pairs[best].before
    two = TwoSteps(0.0, None)
    if weighs_two_steps(len(columns.at) - 1, policy):
        ln_pairs = _ln_gap_pairs(points[theta], coupled)
        ln_best = float(of_pairs[best]) - pairs[best].ln_prior
        two = two_steps(ln_pairs, ln_prior, ln_best, columns.at, policy)
    along = gradual.may_creep(columns.at, ev.mass, policy.prior_creep)
    ranked = [(float(of_pairs[i]), pairs[i]) for i in np.argsort(-of_pairs, kind="stable")]
    creep, crept = (
        (0.0, (0.0, 0.0))
        if along is None
        else _creep(points, coupled, ranked, along, two.p, policy)
    )
    two_sides = [(thetas[p.before], thetas[p.after]) for p in pairs]
    weights = GapWeights(columns.at, ev.mass, np.exp(ln - ln_one))
    still = _collect(columns, two_sides, hypotheses, weights, min_effect, two)
    if still.odd_images < ODD_IMAGES_SEEN:
        still = replace(still, sd_layout_if_even=_sd_layout_of_even(two_sides, weights))
    second = _wild(columns, thetas[theta], still)
    if thetas[theta].tight:
        off = thetas[theta].apart * thetas[theta].spread
        moved = tuple(off if p > WILD_P else 0.0 for p in second)
        still = replace(still, wild=(0.0,) * len(second), mode=moved)
    else:
        still = replace(still, wild=second)
    return _moving(
        ev,
        columns,
        replace(still, creep=creep, crept=crept),
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
        replace(moving, wander=wander, wild=still.wild, mode=still.mode)
        if group
        else blend(still, moving, wander)
    )


def _wild(columns: BootColumns, theta: Theta, post: Posterior) -> tuple[float, ...]:
    """Boot -> P(wild), averaged over both levels by their probability."""
    behind = post.behind()[columns.at[columns.point][columns.node]]
    off = math.sqrt(theta.spread**2 + theta.layout_var)
    clean, wild = np.zeros(len(columns.x)), np.zeros(len(columns.x))
    for level, share in ((post.low, 1.0 - behind), (post.low + post.effect, behind)):
        z = (columns.x - level) / off
        clean += share * (1.0 - theta.wild) * np.exp(-(z**2) / 2)
        wild += (
            share
            * theta.wild
            / theta.width
            * np.exp(-((z - theta.apart) ** 2) / (2 * theta.width**2))
        )
    return tuple(float(p) for p in wild / np.maximum(wild + clean, 1e-300))


def _possible(sides: Sides, pairs: list[ThetaPair]) -> list[ThetaPair]:
    """The pairs whose weight can matter.

    The best fit of a pair, over all gaps and both levels, bounds its weight. The weight of the best
    pair is below its bound by logarithms of the number of gaps, of pairs of levels and of priors,
    together less than 40. Two steps and a creep are weighed under equal spreads only, so the best
    of those pairs stay even if none can matter (for instance, with a cap that only one side
    reaches).
    """
    before, after = [p.before for p in pairs], [p.after for p in pairs]
    best = (sides.left_top[before] + sides.right_top[after]).max(axis=1)
    fits = best + np.array([p.ln_prior for p in pairs])
    near = fits >= fits.max() - _FAR
    equal = np.array([p.equal for p in pairs])
    if not near[equal].any():
        near |= equal & (fits >= fits[equal].max() - _FAR)
    return [pairs[i] for i in np.flatnonzero(near)]


def _hypotheses(sides: Sides, pairs: list[ThetaPair], coupled: Coupling) -> _Hypotheses:
    i, j = [p.before for p in pairs], [p.after for p in pairs]
    left, right = sides.left[i], sides.right[j]
    # power of the level x (pair, gap)
    low = np.einsum("tgcp,tgc->ptg", left, coupled.stepped(right[..., 0]))
    high = np.einsum("tgcp,tgc->ptg", right, coupled.stepped(left[..., 0]))
    with np.errstate(divide="ignore"):
        ln = np.log(low[0]) + sides.left_top[i] + sides.right_top[j]
    powers = (coupled.levels - coupled.middle)[:, None] ** np.arange(3)
    none, none_top = _scaled(sides.whole)
    none = (none @ powers).T[:, i, None]
    with np.errstate(divide="ignore"):
        ln_none = np.log(none[0]) + none_top[i] - math.log(coupled.step)
    # a change of the spread alone is a change
    ln_none[[not p.equal for p in pairs]] = -np.inf
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
    share, kernel = coupled.share, coupled.kernel
    from_left, from_right = (((side @ share) @ kernel) @ share.T for side in (left, right))
    i, j = gap_pairs(len(points) - 1)
    with np.errstate(divide="ignore"):
        middle = before[j] - before[i] + np.log(from_left)[i] + np.log(from_right)[j]
    ln = ln_sum(middle, axis=1) + left_top[i, 0] + right_top[j, 0] + math.log(coupled.step)
    return np.asarray(ln)


def _creep(
    points: Floats,
    coupled: Coupling,
    ranked: list[tuple[float, ThetaPair]],
    along: Floats,
    two: float,
    policy: Policy,
) -> tuple[float, tuple[float, float]]:
    """P(creep) against one step, two, many or none, and (mean, variance) of its size.

    `ranked`: ln weight of one step or none under each combination of noise, the likeliest first;
    the first few are used. `two`: P(two steps).
    """
    ones, manys, lines = [], [], []
    for ln_one, pair in ranked[:_CREEP_NOISES]:
        if not math.isfinite(ln_one):
            break  # unequal spreads are not considered
        grid = gradual.Grid(points[pair.before], coupled.levels, coupled.share, coupled.kernel)
        sizes = gradual.sizes_of(grid, along)
        line = gradual.line(grid, along, effect_density(sizes, policy), sizes)
        ones.append(ln_one)
        manys.append(pair.ln_prior + gradual.many_steps(grid, np.diff(along)))
        lines.append(replace(line, ln=line.ln + pair.ln_prior))
    ln_one, ln_lines = float(ln_sum(np.array(ones))), [line.ln for line in lines]
    best = max(lines, key=lambda line: line.ln)
    p = gradual.creep_probability(ln_lines, manys, ln_one, two, policy.prior_creep)
    return p, (best.size, best.var)


def _collect(
    columns: BootColumns,
    thetas: list[tuple[Theta, Theta]],
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
    # variance of an equivalent Gaussian boot: wild boots tell next to nothing about the level
    spread2 = np.array(
        [(t.spread**2 + b.spread**2) / 2.0 / (1.0 if t.tight else 1.0 - t.wild) for t, b in thetas]
    )
    layout2 = float((per_theta * np.array([t.layout_var for t, _ in thetas])).sum())
    even = _even(thetas)
    odd_images, if_even, if_odd = weights.by_images(even)
    # for the variance of the levels: boots do not show whether the image that they share is odd
    counted = even if odd_images < ODD_IMAGES_SEEN else np.ones(len(thetas), bool)
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
        noisier=_noisier(thetas, per_theta),
        if_even=if_even,
        if_odd=if_odd,
    )


def _even(thetas: list[tuple[Theta, Theta]]) -> NDArray[np.bool_]:
    """Whether no image is odd under each pair."""
    return np.array([t.odd == 0.0 for t, _ in thetas])


def _sd_layout_of_even(thetas: list[tuple[Theta, Theta]], weights: GapWeights) -> float:
    """Return the layout spread given that no image is odd.

    P(odd images) is part of the weight of each commit already. If the spread included it as well, a
    small P would hide every step smaller than the offset of an odd image, whatever is booted.
    """
    even = _even(thetas)
    likely = weights.of_noise[even]
    layout2 = np.array([t.layout**2 for t, _ in thetas])[even]
    return math.sqrt(float((likely * layout2).sum()) / max(float(likely.sum()), 1e-300))


def _noisier(thetas: list[tuple[Theta, Theta]], per_theta: Floats) -> tuple[float, float]:
    """P(the step changes the spread), and the factor if it does."""
    ratio = np.array([math.log(b.spread / t.spread) for t, b in thetas])
    unequal = np.array([t is not b for t, b in thetas])
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
