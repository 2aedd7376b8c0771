"""Sums of likelihoods agree with the general functions to the last digits that matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from swingbot.core.bisect.posterior.log_sums import exp_below, ln_add, ln_sum

lns = st.lists(st.floats(-2000.0, 2000.0), min_size=1, max_size=20)


@given(lns)
def test_a_sum_is_that_of_scipy(values: list[float]) -> None:
    assert float(ln_sum(np.array(values))) == pytest.approx(float(logsumexp(values)), rel=1e-13)


@given(st.lists(st.tuples(st.floats(-2000.0, 2000.0), st.floats(-2000.0, 2000.0)), min_size=1))
def test_two_terms_are_those_of_numpy(pairs: list[tuple[float, float]]) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    assert ln_add(a, b) == pytest.approx(np.logaddexp(a, b), rel=1e-14, abs=1e-14)


def test_a_sum_over_one_axis_keeps_the_others() -> None:
    ln = np.log(np.arange(1.0, 7.0)).reshape(2, 3)
    assert np.exp(ln_sum(ln, axis=1)) == pytest.approx([6.0, 15.0])
    assert np.exp(ln_sum(ln, axis=0)) == pytest.approx([5.0, 7.0, 9.0])


def test_impossible_terms_add_nothing() -> None:
    ln = np.array([[-np.inf, 0.0], [-np.inf, -np.inf]])
    assert ln_sum(ln, axis=1).tolist() == [0.0, -np.inf]
    least = exp_below(np.array([-np.inf, -2000.0, 0.0])).tolist()
    assert 0.0 < least[0] == least[1] < 1e-280 and least[2] == 1.0
