"""The posterior against the same model written out plainly, and its time."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_t

from swingbot.core.bisect.choice.choose import information
from swingbot.core.bisect.evidence.range_evidence import gather
from swingbot.core.bisect.posterior import assessment
from swingbot.core.bisect.posterior.assessment import assess
from swingbot.core.bisect.posterior.gaussian import (
    _pooled_noise,
    layout_ratios,
    posterior,
    summarise,
)
from swingbot.core.bisect.posterior.step_posterior import Posterior
from swingbot.core.bisect.state import BisectionState, PointState
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation
from swingbot.core.model.noise import EMULATED, NoisePrior
from swingbot.core.thresholds import SPREAD_FLOOR
from tests.simulate import SimulatedBench, a_state, bisect_to_the_end

POLICY = Policy(prior_two=0.0, odd_images=0.0)


def a_searched_state(runs: int) -> BisectionState:
    bench = SimulatedBench(
        commits=9,
        culprit=4,
        effect=-0.03,
        boot_noise=0.01,
        run_noise=0.01,
        layout_noise=0.004,
        pert_noise=0.01,
        runs=runs,
        seed=4,
    )
    state = a_state(
        bench, paired=True, noise=NoisePrior(sd_run=0.01, sd_boot=0.01, sd_layout=0.004)
    )
    asked = [(0, 0), (9, 0), (0, 1), (9, 1), (5, 0), (2, 0), (2, 1), (4, 0)]
    observations = tuple(
        Observation(idx=i, k=k, values=bench.boot(i, k)[0], phase="search") for i, k in asked
    )
    return replace(state, observations=observations)


def believed(state: BisectionState) -> Posterior:
    ev = gather(state, POLICY)
    return posterior(ev, state.noise, POLICY, min_effect=math.log(1.01))


def written_out(
    state: BisectionState,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], float]:
    """Every boot a row of one multivariate Student t per hypothesis: no sums, no closed forms.
    Vague normal in place of the flat level."""
    noise, ev = state.noise, gather(state, POLICY)
    sd, _ = _pooled_noise(summarise(ev), noise)
    point, k, y = (
        np.array(x)
        for x in zip(
            *[(*ev.key(b), math.log(float(np.mean(b.values)))) for b in ev.boots], strict=True
        )
    )
    same_point, same_k = (np.equal.outer(x, x).astype(float) for x in (point, k))
    prior_d = max(4.0, (POLICY.prior_effect / sd) ** 2)
    a = noise.certainty  # 2: whole degrees of freedom
    ln: dict[int, list[float]] = {}
    for tau, (lam, weight) in itertools.product(range(ev.last + 1), layout_ratios(noise, sd)):
        behind = (point >= tau).astype(float) if tau else np.zeros(len(y))
        cov = (
            np.eye(len(y))
            + lam * same_point
            + prior_d * np.outer(behind, behind)
            + (0.05 / sd) ** 2 * same_k
            + 1e7
        )
        scale = (a * noise.sd_boot**2 + len(y) * SPREAD_FLOOR**2 / 2) / a
        prior = POLICY.prior_no_change if tau == 0 else (1 - POLICY.prior_no_change) * ev.mass[tau]
        # A flat level costs half a degree of freedom of the inverse gamma's power.
        ln.setdefault(tau, []).append(
            math.log(weight * prior)
            + float(
                multivariate_t(
                    loc=np.full(len(y), y.mean()), shape=scale * cov, df=round(2 * a)
                ).logpdf(y)
            )
        )
    p = np.exp([np.logaddexp.reduce(ln[tau]) for tau in range(ev.last + 1)])
    p /= p.sum()
    return p[1:], float(p[0])


@pytest.mark.parametrize("runs", [1, 2])
def test_the_posterior_is_the_one_of_the_model_written_out(runs: int) -> None:
    state = a_searched_state(runs)
    plain, none = written_out(state)
    seen = believed(state)
    assert seen.commit[1:] == pytest.approx(plain, abs=0.02)
    assert seen.none == pytest.approx(none, abs=0.02)


def test_units_are_irrelevant() -> None:
    state = a_searched_state(3)
    other = replace(
        state,
        observations=tuple(
            replace(o, values=tuple(1e6 * v for v in o.values)) for o in state.observations
        ),
    )
    assert believed(other).commit == pytest.approx(believed(state).commit, abs=1e-6)


def test_what_k_does_to_all_kernels_alike_is_irrelevant_when_paired() -> None:
    state = a_searched_state(1)
    shift = {0: 1.02, 1: 0.97}
    other = replace(
        state,
        observations=tuple(
            replace(o, values=tuple(shift[o.k] * v for v in o.values)) for o in state.observations
        ),
    )
    assert believed(other).commit == pytest.approx(believed(state).commit, abs=0.02)


def test_reversing_the_range_reverses_the_posterior() -> None:
    state = a_searched_state(2)
    last = len(state.points) - 1
    other = replace(
        state, observations=tuple(replace(o, idx=last - o.idx) for o in state.observations)
    )
    assert believed(other).commit[1:] == pytest.approx(believed(state).commit[1:][::-1], abs=1e-9)


def test_more_layout_noise_means_less_certainty() -> None:
    state = a_searched_state(1)
    sure = [
        believed(replace(state, noise=replace(state.noise, sd_layout=sd))).commit.max()
        for sd in (0.0, 0.01, 0.05)
    ]
    assert sure[0] > sure[1] > sure[2]


def test_information_of_a_coin() -> None:
    half = np.array([0.5])
    assert information(half, np.array([1e-6]))[0] == pytest.approx(0, abs=1e-5)
    assert information(half, np.array([100.0]))[0] == pytest.approx(1, abs=1e-3)
    # bisect.md 2.1: C at d = 1 and 2.5
    assert information(half, np.array([1.0]))[0] == pytest.approx(0.161, abs=0.01)
    assert information(half, np.array([6.25]))[0] == pytest.approx(0.637, abs=0.01)
    assert information(np.array([0.0, 1.0]), np.array([9.0, 9.0])) == pytest.approx([0, 0])


@pytest.mark.parametrize("odd", [False, True])
def test_an_odd_image_of_paired_boots_is_not_a_step(odd: bool) -> None:
    """The last image is 4 % low, and no commit is. With a prior of odd images that is not sure
    to be the last commit."""
    policy = Policy() if odd else Policy(odd_images=0.0)
    seen = [
        Observation(idx=i, k=k, values=(1000.0 * (0.96 if i == 40 else 1.0),), phase="search")
        for i in (0, 10, 20, 30, 38, 39, 40)
        for k in range(3)
    ]
    state = BisectionState(
        points=tuple(PointState(idx=i) for i in range(41)),
        observations=tuple(seen),
        paired=True,
        noise=EMULATED,
    )
    post = assess(state, policy).posterior
    assert (post.commit[40] < 0.95) == odd
    assert (post.odd_images > 0.05) == odd
    assert float(post.commit.sum()) + post.none == pytest.approx(1.0)


def test_odd_images_of_paired_boots_cost_a_plain_step_little() -> None:
    bench = SimulatedBench(commits=20, culprit=8, effect=-0.05, run_noise=0.001, seed=2)
    state = a_state(bench, paired=True, noise=EMULATED, layouts=True)
    assert bisect_to_the_end(bench, state).named == 8


@pytest.mark.parametrize("paired", [False, True])
def test_a_part_without_a_new_boot_keeps_its_posterior(paired: bool) -> None:
    before = replace(a_searched_state(1), paired=paired)
    boot = Observation(idx=7, k=0, values=(950.0,), phase="search")
    after = replace(before, observations=(*before.observations, boot))
    kept, left = assess(before, POLICY).part(0, 5), assess(after, POLICY)
    assert left.part(0, 5).post is kept.post
    assert left.part(5, 9).post is not assess(before, POLICY).part(5, 9).post
    assessment._answer.cache_clear()
    assess.cache_clear()
    anew = assess(after, POLICY).part(0, 5).posterior
    assert anew.commit.tolist() == kept.posterior.commit.tolist()
    assert (anew.none, anew.effect, anew.wander) == (
        kept.posterior.none,
        kept.posterior.effect,
        kept.posterior.wander,
    )
