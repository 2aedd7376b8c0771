"""Stage 2 of detection: the Bayes factor is that of the model written out, and decisions are
honest about what they saw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_t

from swingbot.core.stats import evidence
from swingbot.core.stats.evidence import (
    EvidenceThresholds,
    PairPrior,
    log_bayes_factor,
    sequential,
    threshold,
)

RECORD = PairPrior(sd=0.007, df=16)
WORSE = EvidenceThresholds(direction=-1)
steps = st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=25)


def noise(seed: int, n: int, sd: float = 0.007, mean: float = 0.0) -> list[float]:
    return [float(v) for v in np.random.default_rng(seed).normal(mean, sd, n)]


@pytest.mark.parametrize(("df", "fixed"), [(3, 0.0), (16, 0.0), (5, 1.5)])
def test_the_bayes_factor_is_the_one_of_the_model_written_out(
    monkeypatch: pytest.MonkeyPatch, df: int, fixed: float
) -> None:
    monkeypatch.setattr(evidence, "SPREAD_FLOOR", 0.0)
    seen, width, sd = np.array(noise(1, 6, mean=-0.004)), 4.0, 0.006

    def marginal(spread: float) -> float:
        return float(multivariate_t(np.zeros(6), sd**2 * (np.eye(6) + spread), df=df).logpdf(seen))

    found = log_bayes_factor(
        6, seen[None].mean(axis=1), ((seen - seen.mean()) ** 2).sum()[None], df, sd, width, fixed
    )
    assert float(found[0]) == pytest.approx(marginal(fixed + width) - marginal(fixed))


def test_without_a_record_it_is_that_of_the_t_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "SPREAD_FLOOR", 0.0)
    seen, g = np.array([0.02, 0.03, 0.01, 0.025]), 4.0
    n, nu = len(seen), len(seen) - 1
    t2 = n * seen.mean() ** 2 / seen.var(ddof=1)
    expected = (1 + n * g) ** -0.5 * ((1 + t2 / nu) / (1 + t2 / (nu * (1 + n * g)))) ** (
        (nu + 1) / 2
    )
    found = log_bayes_factor(
        n, seen[None].mean(axis=1), ((seen - seen.mean()) ** 2).sum()[None], 0.0, 0.0, g
    )
    assert math.exp(float(found[0])) == pytest.approx(expected)


@given(steps, steps)
def test_pairs_that_come_after_the_decision_change_nothing(
    first: list[float], later: list[float]
) -> None:
    found = sequential(first, RECORD, WORSE)
    if found.answer != "more":
        assert sequential([*first, *later], RECORD, WORSE) == found


@given(steps)
def test_swapping_the_kernels_negates_the_mean_and_nothing_else(diffs: list[float]) -> None:
    one, other = sequential(diffs, RECORD), sequential([-d for d in diffs], RECORD)
    assert (one.answer, one.pairs) == (other.answer, other.pairs)
    assert one.bf == pytest.approx(other.bf)
    assert one.mean == pytest.approx(-other.mean)


def test_a_true_change_is_accepted_and_an_absent_one_is_not() -> None:
    assert sequential(noise(1, 20, mean=-0.02), RECORD, WORSE).answer == "accept"
    assert sequential(noise(2, 20), RECORD, WORSE).answer == "reject"


def test_a_change_against_the_alarm_is_rejected_not_accepted() -> None:
    found = sequential(noise(3, 20, mean=0.03), RECORD, WORSE)
    assert found.answer == "reject"
    assert found.pairs < 8


def test_a_change_far_below_the_minimum_is_given_up_soon() -> None:
    found = sequential(noise(4, 20, sd=0.001, mean=-0.001), PairPrior(sd=0.001, df=16), WORSE)
    assert found.answer == "reject"
    assert found.pairs < 6


def test_identical_values_are_no_infinite_evidence_and_no_change() -> None:
    assert sequential([0.0] * 20, PairPrior(sd=1e-9, df=16), WORSE).answer == "reject"
    found = sequential(
        [-0.05] * 6,
        PairPrior(sd=0.0028, df=1.5),
        EvidenceThresholds(direction=-1, min_effect=0.04, layout=0.002, min_pairs=2),
    )
    assert (found.answer, found.pairs) == ("accept", 2)
    assert math.isfinite(found.bf)


def test_one_wild_pair_never_decides() -> None:
    found = sequential([-0.30, 0.001, -0.002, 0.003], RECORD, WORSE)
    assert found.answer != "accept"


def test_another_layout_of_equal_code_is_no_swing() -> None:
    shifted = [-0.006 + d for d in noise(5, 20, sd=0.0003)]
    gate = EvidenceThresholds(direction=-1, min_effect=0.01, min_pairs=2)
    prior = PairPrior(sd=0.0004, df=16)
    assert sequential(shifted, prior, gate).answer == "accept"
    assert (
        sequential(
            shifted,
            prior,
            EvidenceThresholds(direction=-1, min_effect=0.01, min_pairs=2, layout=0.005),
        ).answer
        != "accept"
    )


def test_a_record_that_the_pairs_refute_is_left_out() -> None:
    noisy = noise(6, 20, sd=0.05)
    believed, doubted = (
        sequential(noisy, PairPrior(sd=0.002, df=16), WORSE),
        sequential(noisy, evidence.UNKNOWN, WORSE),
    )
    assert believed.answer == doubted.answer == "reject"


def test_a_record_of_another_world_does_not_hide_a_clear_change() -> None:
    steady = [-0.09 + d for d in noise(7, 20, sd=0.0005)]
    found = sequential(
        steady,
        PairPrior(sd=2.8, df=16),
        EvidenceThresholds(direction=-1, min_effect=0.02, min_pairs=2),
    )
    assert (found.answer, found.pairs <= 8) == ("accept", True)


def test_the_first_of_several_metrics_needs_more_evidence_than_the_next() -> None:
    assert threshold(1) == 20
    assert threshold(5) == 100
    assert threshold(5, accepted=1) == 50
    assert threshold(2, accepted=4) == 20


def test_no_pair_is_no_answer_and_no_number_is_refused() -> None:
    assert sequential([]).answer == "more"
    with pytest.raises(ValueError, match="not a finite number"):
        sequential([0.01, math.nan])
