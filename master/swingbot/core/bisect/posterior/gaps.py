"""Hypotheses about the step, as both models weigh them: it is in a gap between neighbouring
measured positions, in two of them, or there is none.

Each hypothesis is weighed under several combinations of the unknown noise. Arrays are over
(combination, gap); the last gap stands for "no step".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from swingbot.core.bisect.evidence.range_evidence import Floats, Indices
from swingbot.core.bisect.posterior.log_sums import ln_sum
from swingbot.core.bisect.thresholds import ODD_SWINGS, TWO_STEPS_MOST_GAPS, Policy
from swingbot.core.model.noise import NoisePrior


def gap_prior(at: Indices, mass: Floats, policy: Policy) -> Floats:
    """ln prior of a step in each gap between neighbouring measured positions, then of none."""
    upto = np.cumsum(mass)[at]
    gaps = np.maximum(np.diff(upto), 0.0)
    total = gaps.sum()
    none = policy.prior_no_change if total > 0 else 1.0
    with np.errstate(divide="ignore"):
        return np.asarray(
            np.log(np.append((1.0 - none) * gaps / (total or 1.0), none)), dtype=np.float64
        )


def seen_swing(odd: Sequence[float] | Floats, policy: Policy, gaps: int) -> Floats:
    """(share of odd images, gap, then none) -> what ln prior gains. Somebody saw a swing before:
    where a share of the images is odd, two kernels without a step between them look like one in
    `2 share (1 - share)` of all cases, which makes "no step" as much likelier."""
    share, none = np.asarray(odd, np.float64), policy.prior_no_change
    odds = (none + ODD_SWINGS * 2.0 * share * (1.0 - share)) / max(1.0 - none, 1e-300)
    p = odds / (1.0 + odds)
    gain = np.zeros((len(odd), gaps))
    if not 0.0 < none < 1.0:
        return gain
    gain[:, :-1] = np.log((1.0 - p) / (1.0 - none))[:, None]
    gain[:, -1] = np.log(p / none)
    return gain


def layout_spreads(
    noise: NoisePrior, factors: tuple[tuple[float, float], ...]
) -> tuple[tuple[float, float], ...]:
    """(spread between builds of equal code, its prior), from the noise record and `factors`."""
    if noise.sd_layout <= 0:
        return ((0.0, 1.0),)
    return tuple((factor * noise.sd_layout, weight) for factor, weight in factors)


@dataclass(frozen=True, slots=True)
class TwoSteps:
    """P(two steps) against one or none, and the first and last measured position between the
    likeliest pair."""

    p: float
    middle: tuple[int, int] | None


def weighs_two_steps(gaps: int, policy: Policy) -> bool:
    """Whether two steps are considered in that many gaps."""
    return 2 <= gaps <= TWO_STEPS_MOST_GAPS and policy.prior_two > 0


def gap_pairs(gaps: int) -> tuple[Indices, Indices]:
    """The first and the second gap of each pair."""
    return np.triu_indices(gaps, 1)


def two_steps(
    ln_pairs: Floats, ln_prior: Floats, ln_one: float, at: Indices, policy: Policy
) -> TwoSteps:
    """Weigh a step in each of two gaps against one step or none.

    `ln_pairs`: ln likelihood of each pair in the order of `gap_pairs`; `ln_one`: ln weight of one
    step or none.
    """
    i, j = gap_pairs(len(at) - 1)
    odds = policy.prior_two / (1 - policy.prior_two)
    ln = ln_pairs + ln_prior[i] + ln_prior[j] + math.log(2.0) + math.log(odds)
    best = int(np.argmax(ln))
    return TwoSteps(float(expit(ln_sum(ln) - ln_one)), (int(at[i[best] + 1]), int(at[j[best]])))


@dataclass(frozen=True, slots=True)
class GapWeights:
    """The probability of each hypothesis under each combination of noise; their sum is 1."""

    at: Indices  # measured positions, ascending
    mass: Floats  # position -> prior mass of that commit
    weight: Floats

    @property
    def change(self) -> Floats:
        return self.weight[:, :-1]

    @property
    def none(self) -> float:
        """P(no step)."""
        return float(self.weight[:, -1].sum())

    @property
    def of_noise(self) -> Floats:
        """Probability of each combination of noise."""
        return np.asarray(self.weight.sum(axis=1))

    def mean(self, values: Floats) -> float:
        """Mean of `values` over combinations and gaps, given that there is a step."""
        given = self.change / max(float(self.change.sum()), 1e-300)
        return float((given * values).sum())

    def moments(self, mean: Floats, var: Floats) -> tuple[float, float]:
        """Mean and variance, given that there is a step, from those of each hypothesis."""
        middle = self.mean(mean)
        return middle, self.mean(var + (mean - middle) ** 2)

    def commit(self) -> Floats:
        """Position -> P(the commit that leads to it is the step)."""
        return per_commit(self.at, self.change.sum(axis=0), self.mass)

    def by_images(self, even: NDArray[np.bool_]) -> tuple[float, Floats, Floats | None]:
        """P(some images are odd), and `commit` given that none is and that some are (None: their
        probability is 0). `even`: combination of noise -> no image is odd in it.
        """
        odd = float(self.of_noise[~even].sum())
        if_even = self.change[even].sum(axis=0) / max(1.0 - odd, 1e-300)
        if_odd = self.change[~even].sum(axis=0) / max(odd, 1e-300)
        return (
            odd,
            per_commit(self.at, if_even, self.mass),
            per_commit(self.at, if_odd, self.mass) if odd > 0.0 else None,
        )


def per_commit(at: Indices, gaps: Floats, mass: Floats) -> Floats:
    """Share the probability of each gap between neighbouring measured positions `at`: inside, the
    posterior is the prior.
    """
    commit = np.zeros(len(mass))
    for left, right, p in zip(at[:-1], at[1:], gaps, strict=True):
        inside = mass[left + 1 : right + 1]
        if inside.sum() > 0:
            commit[left + 1 : right + 1] = p * inside / inside.sum()
    return commit
