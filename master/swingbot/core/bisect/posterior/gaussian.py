"""The posterior of the step if all noise is Gaussian, from paired boots: those of equal k share a
shift, and kernels may have odd images.

All but a grid of noise ratios is integrated in closed form (`gaussian_cell`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, stdtr

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats
from swingbot.core.bisect.posterior.gaps import (
    GapWeights,
    TwoSteps,
    gap_prior,
    layout_spreads,
    seen_swing,
    two_steps,
    weighs_two_steps,
)
from swingbot.core.bisect.posterior.gaussian_cell import (
    CellPrior,
    GaussianCell,
    Shift,
    Sums,
    cells_of,
    information_of,
)
from swingbot.core.bisect.posterior.gradual import creep_probability, may_creep
from swingbot.core.bisect.posterior.step_posterior import Posterior
from swingbot.core.bisect.thresholds import (
    ODD_IMAGE_SD,
    ODD_IMAGES,
    ODD_SET,
    PAIRED_LAYOUT_FACTORS,
    SHIFT_SD,
    Policy,
)
from swingbot.core.model.noise import NoisePrior
from swingbot.core.thresholds import SPREAD_FLOOR


def posterior(ev: Evidence, noise: NoisePrior, policy: Policy, *, min_effect: float) -> Posterior:
    """The posterior from paired boots, where boots of equal k share a shift.

    Needs boots of both ends.
    """
    sums = summarise(ev)
    sd, df = _pooled_noise(sums, noise)
    along = may_creep(sums.at, ev.mass, policy.prior_creep)
    shift = Shift(sums, (SHIFT_SD / sd) ** 2, along=along)
    prior = CellPrior.for_boots(max(noise.sd_boot, SPREAD_FLOOR), noise, sd, policy)
    layouts = layout_ratios(noise, sd)
    lams, ln_shares = np.array([[lam] for lam, _ in layouts]), [math.log(w) for _, w in layouts]
    cells = cells_of([shift] * len(layouts), lams, ln_shares, prior)
    ln_prior = gap_prior(sums.at, ev.mass, policy)
    ln = ln_weights(cells, ln_prior)
    ln_one = float(logsumexp(ln))
    two = two_steps_of(cells, ln_prior, ln_one, sums, policy)
    creep, crept = creep_of(cells, ln_one, two.p, policy)
    if policy.odd_images <= 0:
        weights = GapWeights(sums.at, ev.mass, np.exp(ln - ln_one))
        post = collect(sums, cells, weights, two, min_effect, df)
        return replace(post, creep=creep, crept=crept)
    odd = _odd_images(shift, _likeliest(cells, ln), ln_prior, prior, sd, policy)
    ln = np.concatenate([ln + math.log1p(-policy.odd_images), odd.ln + math.log(policy.odd_images)])
    weights = GapWeights(sums.at, ev.mass, np.exp(ln - float(logsumexp(ln))))
    post = collect(sums, [*cells, *odd.cells], weights, two, min_effect, df)
    odd_images, if_even, _ = weights.by_images(np.arange(len(ln)) < len(cells))
    return replace(post, creep=creep, crept=crept, odd_images=odd_images, if_even=if_even)


def summarise(ev: Evidence) -> Sums:
    """Reduce each boot to one number: runs within an emulated boot differ systematically (the first
    is always the fastest), not by chance.
    """
    images = [(p, b.layout) for p, b in zip(ev.boot_positions, ev.boots, strict=True)]
    kernels = sorted(set(images))
    index = {key: i for i, key in enumerate(kernels)}
    ks = {k: i for i, k in enumerate(sorted({b.k for b in ev.boots}))}
    level = np.array([ev.effect(math.fsum(b.values) / len(b.values)) for b in ev.boots])
    centre = float(level.mean()) if len(level) else 0.0
    return Sums(
        at=np.array([p for p, _ in kernels], np.intp),
        point=np.array([index[key] for key in images], np.intp),
        block=np.array([ks[b.k] for b in ev.boots], np.intp),
        weight=np.ones(len(level)),
        level=level - centre,
        centre=centre,
    )


@dataclass(frozen=True, slots=True)
class _OddImages:
    """Sets of kernels whose images are odd, and the ln weight of each gap under each set, given
    that some images are odd.
    """

    cells: list[GaussianCell]
    ln: Floats


def _likeliest(cells: list[GaussianCell], ln: Floats) -> tuple[float, float]:
    """Variance of the likeliest layout, and its ln weight such that odd images have the weights of
    layouts that even images have."""
    best = int(np.argmax(logsumexp(ln, axis=1)))
    share = float(logsumexp(ln[best])) - float(logsumexp(ln))
    return cells[best].lam, cells[best].ln_weight - share


def _odd_images(
    shift: Shift,
    layout: tuple[float, float],
    ln_prior: Floats,
    prior: CellPrior,
    sd: float,
    policy: Policy,
) -> _OddImages:
    """Weigh each single kernel as the odd one, then each pair with the likeliest of these, and so
    on; other sets have negligible weight. `layout`: variance and ln weight.
    """
    shift = Shift(shift.sums, shift.kappa, alone=True)
    many = len(shift.sums.at)
    (base, ln_weight), off = layout, (ODD_IMAGE_SD / sd) ** 2
    gain = seen_swing([s for s, _ in ODD_IMAGES], policy, len(ln_prior))
    chosen: list[int] = []
    cells: list[GaussianCell] = []
    lns: list[Floats] = []
    for size in range(1, min(ODD_SET, many) + 1):
        of_shares = [
            math.log(w) + size * math.log(s) + (many - size) * math.log1p(-s) for s, w in ODD_IMAGES
        ]
        of_size = logsumexp(np.array(of_shares)[:, None] + gain, axis=0)
        others = [i for i in range(many) if i not in chosen]
        lams = np.full((len(others), many), base)
        lams[:, chosen] += off
        lams[np.arange(len(others)), others] += off
        found = cells_of([shift] * len(others), lams, [0.0] * len(others), prior)
        ln = np.array([cell.ln_likelihood for cell in found]) + ln_prior + ln_weight + of_size
        cells += found
        lns.append(ln)
        chosen.append(others[int(np.argmax(logsumexp(ln, axis=1)))])
    return _OddImages(cells, np.concatenate(lns))


def layout_ratios(noise: NoisePrior, sd: float) -> list[tuple[float, float]]:
    """(variance of the layout in variances `sd**2` of a boot, weight)."""
    return [((spread / sd) ** 2, w) for spread, w in layout_spreads(noise, PAIRED_LAYOUT_FACTORS)]


def _pooled_noise(sums: Sums, noise: NoisePrior) -> tuple[float, float]:
    """sd of a boot from its replicates and the prior, and the degrees of freedom of the
    replicates.
    """
    info, vector, square, _ = information_of(sums, 1e12)
    squares = max(
        square - float(vector @ np.linalg.pinv(info, rcond=1e-9, hermitian=True) @ vector), 0.0
    )
    df = max(len(sums.level) - len(np.unique(sums.block)) - (len(sums.at) - 1), 0)
    a2 = 2.0 * noise.certainty
    return max(
        math.sqrt((a2 * max(noise.sd_boot, SPREAD_FLOOR) ** 2 + squares) / (a2 + df)), SPREAD_FLOOR
    ), df


def ln_weights(cells: list[GaussianCell], ln_prior: Floats) -> Floats:
    """(cell, gap) -> ln weight; the last gap stands for "no step"."""
    return np.array([c.ln_weight + c.ln_likelihood for c in cells]) + ln_prior


def two_steps_of(
    cells: list[GaussianCell], ln_prior: Floats, ln_one: float, sums: Sums, policy: Policy
) -> TwoSteps:
    """Weigh two steps; `ln_one`: ln weight of one step or none."""
    if not weighs_two_steps(len(sums.at) - 1, policy):
        return TwoSteps(0.0, None)
    ln_pairs = logsumexp(np.array([c.ln_weight + c.two for c in cells]), axis=0)
    return two_steps(ln_pairs, ln_prior, ln_one, sums.at, policy)


def creep_of(
    cells: list[GaussianCell], ln_one: float, two: float, policy: Policy
) -> tuple[float, tuple[float, float]]:
    """P(creep) against one step, two, many or none, and (mean, variance) of its size."""
    weighed = [(c, c.gradual) for c in cells if c.gradual is not None]
    if not weighed:
        return 0.0, (0.0, 0.0)
    ln_many = [c.ln_weight + gradual.ln_walk for c, gradual in weighed]
    ln_lines = np.array([c.ln_weight + gradual.ln_line for c, gradual in weighed])
    weight = np.exp(ln_lines - float(logsumexp(ln_lines)))
    sizes = np.array([gradual.size for _, gradual in weighed])
    # variance of a boot under the likeliest step, or under none
    scale2 = np.array([float(c.scale2.min()) for c, _ in weighed])
    mean = float(weight @ sizes)
    vars_ = scale2 * np.array([gradual.var for _, gradual in weighed])
    var = float(weight @ (vars_ + (sizes - mean) ** 2))
    p = creep_probability(ln_lines.tolist(), ln_many, ln_one, two, policy.prior_creep)
    return p, (mean, var)


def collect(
    sums: Sums,
    cells: list[GaussianCell],
    weights: GapWeights,
    two: TwoSteps,
    min_effect: float,
    df: float,
) -> Posterior:
    """The posterior from the weights of (cell, gap); `df`: degrees of freedom of the replicates."""
    scale2, effect, low, var = (
        np.array([getattr(c, name) for c in cells]) for name in ("scale2", "effect", "low", "var")
    )
    lam = np.array([c.lam for c in cells])[:, None]
    t_df = np.array([c.df for c in cells])[:, None]
    effect = effect[:, :-1]
    sd = np.sqrt(scale2 * var)[:, :-1]
    small = stdtr(t_df, (min_effect - effect) / sd) - stdtr(t_df, (-min_effect - effect) / sd)
    mean, effect_var = weights.moments(effect, sd**2)
    # mu is confounded with the shifts; the reference level of the points is known as well as the
    # difference of the ends
    level_var = weights.mean((scale2 * var / 2)[:, :-1])
    return Posterior(
        commit=weights.commit(),
        none=weights.none,
        none_or_small=weights.none + float((weights.change * small).sum()),
        effect=mean,
        effect_var=effect_var,
        low=sums.centre + weights.mean(low[:, :-1]),
        low_var=level_var,
        high_var=level_var,
        sd_layout=math.sqrt(float((weights.weight * scale2 * lam).sum())),
        boot_var=float((weights.weight * scale2).sum()),
        two=two.p,
        middle=two.middle,
        df=df,
    )
