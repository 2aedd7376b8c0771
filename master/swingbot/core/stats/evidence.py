"""Stage 2 of detection: evidence for a change from fresh pairs of boots, updated after each pair.

A pair difference is `d_k = ln(head_k / base_k)` of the boot means of two adjacent boots, or
whatever difference is an effect for the metric. The Bayes factor compares "the kernels differ"
with "they differ by no more than two builds of equal code do". Derivation, error rates and power:
docs/statistics.md, "From a swing to a bisection".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import fdtr, fdtrc, stdtr

from swingbot.core.thresholds import (
    BAYES_WITHOUT_BEST,
    CHANGE_WIDTH,
    CHANGE_WIDTH_RECORDED,
    FALSE_DISCOVERY_RATE,
    FUTILE_P,
    LAYOUT_SDS,
    MAX_PAIRS,
    MIN_PAIRS,
    PAIRS_NOISIER_P,
    PAIRS_QUIETER_P,
    RECORD_MOST_PAIRS,
    SPREAD_FLOOR,
    SWING_LEAST_SHARE,
    UNRECORDED_FACTOR,
)

Answer = Literal["accept", "reject", "more"]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPrior:
    """Prior knowledge of pair differences.

    The standard deviation (relative, 0.01 is 1 %), and the number of observations it is worth.
    """

    sd: float = 0.0
    df: float = 0.0  # 0: no prior knowledge; the evidence is then exact for any noise

    @property
    def known(self) -> bool:
        return self.sd > 0 and self.df > 0


UNKNOWN: Final = PairPrior()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceThresholds:
    """Thresholds on the evidence. Effects are on the scale of the differences (log ratios)."""

    # Bayes factor required to accept; `threshold()` computes it for several metrics of one head
    threshold: float = 1.0 / FALSE_DISCOVERY_RATE
    min_effect: float = 0.01  # smallest relevant change
    direction: Literal[-1, 0, 1] = 0  # of the change that raised the alarm; 0: either
    layout: float = (
        0.0  # sd frozen into each of the two kernel images; more pairs do not average it out
    )
    min_pairs: int = MIN_PAIRS
    max_pairs: int = MAX_PAIRS


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A decision after `pairs` pairs; any later pairs were not needed."""

    answer: Answer
    bf: float  # Bayes factor after `pairs`
    pairs: int
    mean: float  # of the differences used; 0 without any
    reason: str


def threshold(metrics: int, accepted: int = 0) -> float:
    """Return the Bayes factor required for the next swing of a head.

    `metrics` is the number of its benchmark metrics, `accepted` the number of swings so far.
    e-BH (Wang & Ramdas 2022): the k largest of M e-values are accepted if the k-th is at least
    M / (q k). A metric that was not examined counts as 0.
    """
    return max(metrics, accepted + 1) / (FALSE_DISCOVERY_RATE * (accepted + 1))


def wanted(prior: PairPrior, gate: EvidenceThresholds) -> float:
    """Return the Bayes factor at which a change is accepted."""
    return gate.threshold * (1.0 if prior.known else UNRECORDED_FACTOR)


def sequential(
    diffs: Sequence[float],
    prior: PairPrior = UNKNOWN,
    gate: EvidenceThresholds | None = None,
    odds: Sequence[float] = (),
) -> Decision:
    """Read `diffs` in order until the evidence suffices for either answer.

    `odds`: number of pairs - 1 -> likelihood that the kernels differ in the share of far-off runs,
    over that of one share (`path_share.pair_odds`); none: 1. Half of the error is theirs, so twice
    the threshold accepts; above 1 they keep a swing that the mean alone rejects.
    The answer depends on the order of the pairs, never on how many arrived at once.
    Raises ValueError if a difference is not finite.
    """
    gate = gate or EvidenceThresholds()
    values = np.asarray(diffs, dtype=float)
    if not np.isfinite(values).all():
        raise ValueError(
            "a pair difference is not a finite number; leave out pairs without a value on both"
            " sides"
        )
    decision = Decision(answer="more", bf=1.0, pairs=0, mean=0.0, reason="no pair yet")
    for n in range(1, min(len(values), gate.max_pairs) + 1):
        decision = _after(values[:n], prior, gate)
        if decision.answer != "accept" and n <= len(odds) and odds[n - 1] > 1.0:
            decision = _with_path(decision, gate, odds[n - 1])
        if decision.answer != "more":
            break
    return decision


def _with_path(decision: Decision, gate: EvidenceThresholds, odds: float) -> Decision:
    """Return the decision with the evidence of far-off runs."""
    limit, side = 2.0 * gate.threshold, gate.direction or math.copysign(1.0, decision.mean)
    shown = odds >= limit and side * decision.mean >= _least(gate)
    if shown and decision.pairs >= max(2, gate.min_pairs):
        why = (
            f"odds {odds:.3g} that a share of the runs is far off after {decision.pairs} pairs; the"
            f" threshold is {limit:g}"
        )
        return replace(decision, answer="accept", bf=odds, reason=why)
    if decision.answer == "reject" and decision.pairs < gate.max_pairs:
        return replace(decision, answer="more")
    return decision


def _after(seen: Array, prior: PairPrior, gate: EvidenceThresholds) -> Decision:
    """Decide after the pairs `seen`; the earlier pairs decided nothing."""
    read = reading(seen[None, :], prior, gate)
    n, bf, mean = len(seen), math.exp(min(float(read["log_bf"][0]), 700.0)), float(seen.mean())
    evidence = f"Bayes factor {bf:.3g} for a change after {n} pair{'s' * (n > 1)}"
    limit = f"the threshold is {wanted(prior, gate):g}"
    answer: Answer = "more"
    if bool(read["accept"][0]):
        answer, evidence = "accept", f"{evidence}; {limit}"
    elif bool(read["futile"][0]):
        answer, evidence = "reject", f"{evidence}; a change that matters is unlikely"
    elif n >= gate.max_pairs:
        answer, evidence = "reject", f"{evidence} of at most {gate.max_pairs}; {limit}"
    return Decision(answer=answer, bf=bf, pairs=n, mean=mean, reason=evidence)


def reading(seen: Array, prior: PairPrior, gate: EvidenceThresholds) -> dict[str, Any]:
    """Evaluate many series at once.

    `seen` has shape (series, pairs). Returns `log_bf`, `accept` and `futile`, one value per series.
    """
    n = seen.shape[1]
    mean = seen.mean(axis=1)
    squares = ((seen - mean[:, None]) ** 2).sum(axis=1)
    df = _prior_df(n, squares, prior)
    width, fixed = _width(prior, gate), _fixed(prior, gate)
    log_bf = log_bayes_factor(n, mean, squares, df, prior.sd, width, fixed)
    side = np.sign(mean) if gate.direction == 0 else np.full_like(mean, gate.direction)
    half = _least(gate)
    ready = n >= max(2, gate.min_pairs)
    accept = (
        ready
        & (log_bf >= math.log(wanted(prior, gate)))
        & (side * mean >= half)
        & _without_best(seen, side, df, prior, gate)
    )
    look = _Look(n=n, mean=mean, squares=squares, df=df, sd=prior.sd, width=width, fixed=fixed)
    p = _share_above(half, side * mean, look)
    futile = (p < FUTILE_P) if n >= 2 else np.zeros_like(accept)
    return {"log_bf": log_bf, "accept": accept, "futile": futile & ~accept}


def log_bayes_factor(
    n: int,
    mean: Array,
    squares: Array,
    df: Array | float,
    sd: float,
    width: float = CHANGE_WIDTH,
    fixed: float = 0.0,
) -> Array:
    """Return ln of P(pairs | change) / P(pairs | none) for `n` pairs.

    The pairs have the given mean and sum of squares about it. sigma^2 ~ scaled inverse chi^2
    (df, sd^2), and the change is N(0, width sigma^2). `fixed` sigma^2 is the variance frozen into
    the images under both hypotheses. With df = 0 and fixed = 0 this is the Bayes factor of the
    one-sample t test with a normal prior on the effect.
    """
    total = df + n
    none, change = (_residual(n, mean, squares, df, sd, fixed + extra) for extra in (0.0, width))
    return np.asarray(
        0.5 * math.log((1 + n * fixed) / (1 + n * (fixed + width)))
        + 0.5 * total * (np.log(none) - np.log(change))
    )


def _residual(
    n: int, mean: Array, squares: Array, df: Array | float, sd: float, spread: float
) -> Array:
    return np.asarray(df * sd**2 + squares + n * SPREAD_FLOOR**2 + n * mean**2 / (1 + n * spread))


def _prior_df(n: int, squares: Array, prior: PairPrior) -> Array:
    """Return the prior degrees of freedom; 0 if the pairs contradict the prior's spread."""
    df = np.full_like(squares, min(prior.df, RECORD_MOST_PAIRS) if prior.known else 0.0)
    if n < 2 or not prior.known:
        return df
    ratio = squares / (n - 1) / max(prior.sd, SPREAD_FLOOR) ** 2
    refuted = fdtrc(n - 1, prior.df, ratio) < PAIRS_NOISIER_P
    if n >= MIN_PAIRS:  # two or three pairs may agree by chance
        refuted |= fdtr(n - 1, prior.df, ratio) < PAIRS_QUIETER_P
    return np.where(refuted, 0.0, df)


def _width(prior: PairPrior, gate: EvidenceThresholds) -> float:
    """Return the prior variance of the change, in units of the noise variance.

    With known noise, it is large enough to make the minimum effect plausible.
    """
    return (
        max(CHANGE_WIDTH_RECORDED, (gate.min_effect / max(prior.sd, SPREAD_FLOOR)) ** 2)
        if prior.known
        else CHANGE_WIDTH
    )


def _fixed(prior: PairPrior, gate: EvidenceThresholds) -> float:
    """Return the variance of the difference between two images, in units of the noise variance.

    Without a noise record, only the minimum effect guards against such differences.
    """
    return 2.0 * (gate.layout / max(prior.sd, SPREAD_FLOOR)) ** 2 if prior.known else 0.0


def _least(gate: EvidenceThresholds) -> float:
    """Return the smallest mean difference that is accepted."""
    return max(SWING_LEAST_SHARE * gate.min_effect, LAYOUT_SDS * math.sqrt(2.0) * gate.layout)


def _without_best(
    seen: Array, side: Array, df: Array, prior: PairPrior, gate: EvidenceThresholds
) -> npt.NDArray[np.bool_]:
    """Return for each metric whether the change remains without the pair that supports it most.

    The mean is always tested without that pair, the evidence from `MIN_PAIRS` pairs on.
    """
    n = seen.shape[1]
    if n < 2:
        return np.zeros(seen.shape[0], dtype=bool)
    turned = np.sort(seen * side[:, None], axis=1)[:, :-1]
    mean = turned.mean(axis=1)
    stands: npt.NDArray[np.bool_] = mean >= _least(gate)
    if n < MIN_PAIRS:
        return stands
    squares = ((turned - mean[:, None]) ** 2).sum(axis=1)
    rest = log_bayes_factor(
        n - 1, mean, squares, df, prior.sd, _width(prior, gate), _fixed(prior, gate)
    )
    return np.asarray(stands & (rest >= math.log(BAYES_WITHOUT_BEST)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """`n` pairs of each series: mean and sum of squares; spreads as in `log_bayes_factor`."""

    n: int
    mean: Array
    squares: Array
    df: Array
    sd: float
    width: float
    fixed: float


def _share_above(least: float, turned: Array, look: _Look) -> Array:
    """Return P(change in the direction of the alarm >= least | pairs, there is a change).

    A Student t distribution with df + n degrees of freedom.
    """
    noise = look.fixed + 1.0 / look.n
    shrink = look.width / (look.width + noise)
    residual = _residual(look.n, look.mean, look.squares, look.df, look.sd, look.fixed + look.width)
    scale = np.sqrt(residual / (look.df + look.n) * shrink * noise)
    return np.asarray(stdtr(look.df + look.n, (turned * shrink - least) / scale))
