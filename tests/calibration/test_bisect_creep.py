"""A level that moves with every commit is distinguished from steps and reported as creep."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from swingbot.core.bisect.posterior import gradual
from swingbot.core.bisect.posterior.assessment import assess
from swingbot.core.bisect.state import BisectionState
from swingbot.core.bisect.thresholds import CREEP_MANY_STEPS, Policy
from swingbot.core.model.bisection import Observation
from swingbot.core.model.noise import EMULATED, NoisePrior
from tests.simulate import SimulatedBench, a_state, bisect_to_the_end, known_noise

POLICY = Policy()


def spread_out(bench: SimulatedBench, boots: int, *, paired: bool = False) -> BisectionState:
    """Each ninth of the range was booted so often."""
    places = np.linspace(0, bench.commits, 9).round().astype(int)
    seen = [
        Observation(idx=int(i), k=k, values=bench.boot(int(i), k)[0], phase="search")
        for k in range(boots)
        for i in places
    ]
    noise = EMULATED if paired else known_noise(bench)
    return replace(a_state(bench, paired=paired, noise=noise), observations=tuple(seen))


def p_creep(state: BisectionState, policy: Policy = POLICY) -> float:
    return assess(state, policy).posterior.creep


@pytest.mark.parametrize("seed", [1, 2])
def test_a_creep_ends_as_a_creep_and_names_no_commit(seed: int) -> None:
    bench = SimulatedBench(
        commits=40, culprit=None, commit_creep=-0.12, run_noise=0.01, runs=3, seed=seed
    )
    ended = bisect_to_the_end(bench, a_state(bench, noise=known_noise(bench))).conclusion
    assert ended.kind == "creep"
    assert not ended.culprits and not ended.members
    assert ended.probability is not None and ended.probability >= POLICY.creep
    assert ended.interval_pct is not None
    assert ended.interval_pct[0] < -12.0 < ended.interval_pct[1]
    assert "no single commit" in ended.reason
    # `bisect run` replaces each "commit N" by its id
    assert "from commit 1 to commit 40, by" in ended.reason


def test_a_creep_is_seen_on_paired_boots_too() -> None:
    bench = SimulatedBench(
        commits=40, culprit=None, commit_creep=-0.12, run_noise=0.002, pert_noise=0.01, seed=3
    )
    state = a_state(bench, paired=True, noise=EMULATED)
    assert bisect_to_the_end(bench, state).conclusion.kind == "creep"


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(
    "steps", [{20: -0.12}, {7: -0.06, 30: -0.06}, {8: -0.04, 21: -0.04, 33: -0.04}]
)
def test_steps_are_no_creep(steps: dict[int, float], paired: bool) -> None:
    bench = SimulatedBench(commits=40, culprit=None, others=steps, run_noise=0.003, runs=1, seed=4)
    # paired boots have no model of wild images: layouts may have moved three steps onto a line
    assert p_creep(spread_out(bench, 3, paired=paired)) < (POLICY.creep if paired else 0.05)


@pytest.mark.parametrize("paired", [False, True])
def test_more_boots_of_a_creep_make_it_surer(paired: bool) -> None:
    bench = SimulatedBench(
        commits=40, culprit=None, commit_creep=-0.12, run_noise=0.02, runs=1, seed=5
    )
    few, many = (p_creep(spread_out(bench, boots, paired=paired)) for boots in (1, 8))
    assert many > max(few, 0.9)


def test_a_creep_needs_enough_places_and_a_prior() -> None:
    bench = SimulatedBench(commits=40, culprit=None, commit_creep=-0.12, run_noise=0.01)
    state = spread_out(bench, 4)
    assert p_creep(state, replace(POLICY, prior_creep=0.0)) == 0.0
    only = tuple(o for o in state.observations if o.idx in (0, 20, 40))
    assert p_creep(replace(state, observations=only)) == 0.0


def test_the_likelihood_of_a_line_is_that_of_the_gaussian_written_out() -> None:
    rng = np.random.default_rng(7)
    at, sd = np.linspace(0.0, 1.0, 7), 0.01
    seen = 0.05 * at + rng.normal(0.0, sd, 7)
    levels = np.arange(-0.15, 0.2, 0.001)
    points = np.asarray(norm.logpdf(seen[:, None], levels[None, :], sd))
    grid = gradual.Grid(points[None], levels, np.zeros((len(levels),) * 2))
    near = gradual.Lines.near(grid, at)
    found = gradual.line(grid, at, near, norm.pdf(near.sizes, scale=0.1))
    fine = np.linspace(-0.3, 0.3, 3001)
    each = levels[:, None, None] + fine[None, :, None] * at
    lines = np.asarray(norm.logpdf(seen, each, sd)).sum(axis=2)
    prior = norm.logpdf(fine, scale=0.1) + math.log(float(fine[1] - fine[0]) / 0.001)
    assert found.ln[0] == pytest.approx(float(logsumexp(lines + prior)), abs=0.02)
    assert found.size[0] == pytest.approx(0.05, abs=4 * math.sqrt(found.var[0]))


def test_any_number_of_steps_has_one_and_none_in_it() -> None:
    """Two positions: the sum over no step and one."""
    levels = np.arange(-0.1, 0.1, 0.002)
    points = np.asarray(norm.logpdf(np.array([0.0, 0.04])[:, None], levels[None, :], 0.01))
    apart = levels[:, None] - levels[None, :]
    kernel = norm.pdf(apart, scale=0.05)
    grid = gradual.Grid(points[None], levels, kernel)
    p = 1.0 - math.exp(-CREEP_MANY_STEPS)
    a, b = np.exp(points)
    both = (1.0 - p) * float(a @ b) / 0.002 + p * float(a @ kernel @ b)
    assert gradual.many_steps(grid, np.array([1.0]))[0] == pytest.approx(math.log(both), abs=1e-6)


def test_a_step_is_named_with_what_the_creep_leaves_of_its_probability() -> None:
    bench = SimulatedBench(commits=30, culprit=11, effect=-0.08, run_noise=0.01, seed=9)
    noise = NoisePrior(sd_run=0.01, sd_boot=1e-4, sd_layout=0.0, certainty=50.0)
    ended = bisect_to_the_end(bench, a_state(bench, noise=noise, layouts=True))
    post = assess(ended.state, POLICY).posterior
    assert ended.named == 11
    assert ended.conclusion.probability == pytest.approx(
        float(post.commit[11]) * (1.0 - post.creep), abs=1e-9
    )
