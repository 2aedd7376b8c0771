"""The posterior of the step if the level of a testbox moves with time.

Boots that are close in time share a shift; the noise is Gaussian (`gaussian_cell`). Each testbox of
a group has an offset of its own as well.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from swingbot.core.bisect.evidence.range_evidence import Evidence, Floats, Indices
from swingbot.core.bisect.posterior.gaps import GapWeights, gap_prior
from swingbot.core.bisect.posterior.gaussian import (
    collect,
    creep_of,
    layout_ratios,
    ln_weights,
    two_steps_of,
)
from swingbot.core.bisect.posterior.gaussian_cell import CellPrior, Shift, Sums, cells_of
from swingbot.core.bisect.posterior.gradual import may_creep
from swingbot.core.bisect.posterior.step_posterior import Posterior
from swingbot.core.bisect.thresholds import (
    TESTBOX_SD,
    WANDER_BOOTS,
    WANDER_FACTORS,
    WANDER_SD,
    WANDERS_NOT_SEEN,
    WANDERS_SEEN,
    WANDERS_UNKNOWN,
    Policy,
)
from swingbot.core.model.noise import NoisePrior


def wandering(
    ev: Evidence,
    sums: Sums,
    noise: NoisePrior,
    policy: Policy,
    *,
    spread: float,
    prior_spread: float,
    min_effect: float,
) -> tuple[Posterior, float]:
    """The posterior given that the level of each testbox moves with time, and the probability that
    it moves.

    `spread`: sd of one boot; `prior_spread`: the same as known before the bisection. Each testbox
    of a group also has an offset of its own, which tells nothing about the step.
    """
    at = sums.at
    times = np.array([i if b.at is None else b.at for i, b in enumerate(ev.boots)], np.float64)
    testboxes = np.array([b.testbox for b in ev.boots], np.intp)
    prior = CellPrior.for_boots(prior_spread, noise, spread, policy)
    ln_prior = gap_prior(at, ev.mass, policy)
    along = may_creep(at, ev.mass, policy.prior_creep)
    layouts = layout_ratios(noise, spread)
    shifts, lams, ln_shares, still = [], [], [], []
    for factor, seconds, share in _wanders(times, noise, spread):
        shift = Shift(
            sums, factor**2, _together(times, testboxes, spread, factor**2, seconds), along
        )
        shifts += [shift] * len(layouts)
        lams += [[lam] for lam, _ in layouts]
        ln_shares += [math.log(share * w) for _, w in layouts]
        still += [factor == 0.0] * len(layouts)
    cells = cells_of(shifts, np.array(lams), ln_shares, prior)
    ln = ln_weights(cells, ln_prior)
    weights = np.exp(ln - float(logsumexp(ln)))
    wander = float(weights[~np.array(still)].sum())
    # only this function judges a group
    moves = np.flatnonzero(~np.array(still)) if testboxes.max() == 0 else np.arange(len(still))
    cells, ln_one = [cells[i] for i in moves], float(logsumexp(ln[moves]))
    two = two_steps_of(cells, ln_prior, ln_one, sums, policy)
    df = max(len(sums.level) - len(at), 0)
    moving = GapWeights(at, ev.mass, np.exp(ln[moves] - ln_one))
    creep, crept = creep_of(cells, ln_one, two.p, policy)
    post = collect(sums, cells, moving, two, min_effect, df)
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


def _together(
    times: Floats, testboxes: Indices, spread: float, kappa: float, seconds: float
) -> Floats | None:
    """Covariance of the boots of one testbox, in units of the variance of one boot.

    It is the offset of the testbox in its group, and an Ornstein-Uhlenbeck process in time.
    """
    group = testboxes.max() > 0
    if kappa == 0 and not group:
        return None
    apart = np.abs(times[:, None] - times[None, :]) / seconds
    offset = (TESTBOX_SD / spread) ** 2 if group else 0.0
    return np.where(testboxes[:, None] == testboxes[None, :], offset + kappa * np.exp(-apart), 0.0)
