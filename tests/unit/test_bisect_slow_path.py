"""A path that some runs take, as evidence of a bisection beside the level of the others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import betabinom, binom

from swingbot.core.bisect.evidence.far_runs import far_runs
from swingbot.core.bisect.evidence.range_evidence import gather
from swingbot.core.bisect.posterior.assessment import assess
from swingbot.core.bisect.posterior.slow_path import Path, ShareStep
from swingbot.core.bisect.posterior.step_posterior import wild_on_both_sides
from swingbot.core.bisect.state import BisectionState
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation
from swingbot.core.stats.path_share import SHARES
from swingbot.core.thresholds import FAR_RUNS_TOGETHER
from tests.simulate import a_state
from tests.worlds import SimulatedBench

POLICY = Policy()
LEAST = math.log(1.01)


def a_range(*boots: tuple[int, list[float]], commits: int = 4) -> BisectionState:
    """(point, runs as shares of 1000) of each boot."""
    state = a_state(SimulatedBench(commits=commits))
    count: dict[int, int] = {}
    seen = []
    for idx, runs in boots:
        k = count[idx] = count.get(idx, -1) + 1
        seen.append(Observation(idx=idx, k=k, values=tuple(1000.0 * r for r in runs), phase="ends"))
    return BisectionState(points=state.points, observations=tuple(seen), noise=state.noise)


USUAL = [1.001, 0.999, 1.003, 0.997, 1.0]


def test_runs_far_below_and_above_are_counted_by_boot() -> None:
    state = a_range((0, USUAL), (0, [*USUAL, 1.9]), (4, [*USUAL, 0.5]), (4, [*USUAL, 0.5, 0.52]))
    far = far_runs(gather(state, POLICY), LEAST)
    assert far is not None
    assert (far.below.tolist(), far.above.tolist()) == ([0, 0, 1, 2], [0, 1, 0, 0])
    assert far.runs.tolist() == [5, 6, 6, 7]
    assert far.offset_below == pytest.approx(math.log(0.5), abs=0.03)


def test_in_a_boot_most_of_whose_runs_are_off_the_others_are_the_usual_ones() -> None:
    state = a_range((0, USUAL), (0, USUAL), (4, USUAL), (4, [1.0, 0.5, 0.51, 0.49, 1.002]))
    far = far_runs(gather(state, POLICY), LEAST)
    assert far is not None and far.below.tolist() == [0, 0, 0, 3] and not far.above.any()


def test_a_kernel_with_four_slow_runs_of_ten_does_not_count_as_noisy() -> None:
    """As a bisection saw it: the middle of some boots lies between both kinds of runs."""
    slow = [[1.0, 0.75, 1.01, 0.75, 0.99, 0.75, 1.01, 0.75, 1.02, 1.0]]
    slow += [[1.0, 0.75, 1.0, 0.98, 1.0, 1.0, 1.0, 0.99, 0.74, 0.99]]
    slow += [[1.0, 0.98, 0.99, 0.75, 0.98, 1.0, 0.98, 0.98, 0.75, 1.01]]
    slow += [[0.74, 0.75, 0.99, 0.74, 0.98, 1.0, 0.75, 0.99, 0.97, 0.74]]
    slow += [[1.0, 0.74, 0.99, 0.75, 0.98, 0.74, 0.98, 0.73, 0.74, 0.98]]
    clean = [0.99, 1.01, 1.0, 1.02, 0.98, 1.0, 0.99, 1.01, 1.0, 1.005]
    state = a_range((0, clean), (0, clean), *((4, runs) for runs in slow))
    far = far_runs(gather(state, POLICY), LEAST)
    assert far is not None and far.below.tolist()[:5] == [0, 0, 4, 2, 2] and not far.above.any()


def test_a_level_of_its_own_is_no_path() -> None:
    shifted = [0.5 * r for r in USUAL]
    state = a_range((0, USUAL), (0, USUAL), (2, shifted), (4, USUAL), (4, shifted))
    assert far_runs(gather(state, POLICY), LEAST) is None


def test_a_noisier_kernel_has_no_path() -> None:
    rng = np.random.default_rng(1)
    boots = [(p, (1 + rng.normal(0, s, 10)).tolist()) for p, s in ((0, 0.002), (4, 0.02)) * 6]
    far = far_runs(gather(a_range(*boots), POLICY), LEAST)
    assert far is None or far.below.sum() + far.above.sum() <= 1


def test_two_shares_against_one_is_a_ratio_of_beta_binomial_likelihoods() -> None:
    k, n, place = np.array([0, 1, 3, 2]), np.array([10, 10, 8, 10]), np.array([0, 0, 1, 1])

    def of(boots: list[int], share: float, together: float) -> float:
        p = 1.0
        for b in boots:
            size = 1 / together - 1 if together else 0.0
            p *= float(
                betabinom.pmf(k[b], n[b], share * size, (1 - share) * size)
                if together
                else binom.pmf(k[b], n[b], share)
            )
        return p

    one = two = 0.0
    for together, weight in FAR_RUNS_TOGETHER:
        one += weight * float(np.mean([of([0, 1, 2, 3], s, together) for s in SHARES]))
        two += weight * math.prod(
            float(np.mean([of(side, s, together) for s in SHARES])) for side in ([0, 1], [2, 3])
        )
    assert float(ShareStep.of(Path("run", k, n, -0.7), place).ratio[0]) == pytest.approx(two / one)


def test_slow_runs_behind_a_commit_move_the_belief_to_it() -> None:
    slow = [*USUAL, *USUAL[:3], 0.5, 0.5]
    clean = USUAL * 2
    state = a_range(*[(0, clean), (4, slow)] * 3, *[(1, clean)] * 4, *[(2, slow)] * 2, (3, slow))
    post = assess(state, POLICY).posterior
    assert post.slow_path is not None
    assert post.slow_path.alone > 0.7 and post.commit[2] > 0.8 and post.none < 0.01
    assert post.slow_path.behind == pytest.approx(0.2, abs=0.08)
    assert post.slow_path.before < 0.05
    assert post.slow_path.change == pytest.approx(math.log(0.9), abs=0.04)
    assert float(post.commit.sum()) + post.none == pytest.approx(1.0)


def test_slow_runs_on_both_sides_are_no_change() -> None:
    slow, clean = [*USUAL, *USUAL[:3], 0.5, 0.5], USUAL * 2
    state = a_range(*[(0, clean), (4, slow), (0, slow), (4, clean)] * 4)
    post = assess(state, POLICY).posterior
    assert post.slow_path is not None and post.slow_path.p < 0.08


def test_low_boots_of_one_side_belong_to_the_kernel_and_are_not_left_out() -> None:
    low, high = [0.9 * r for r in USUAL], USUAL
    ends = [*[(0, high)] * 12, *[(4, high), (4, low)] * 6]
    ev = gather(a_range(*ends), POLICY)
    post = replace(
        assess(a_range(*ends), POLICY).posterior,
        commit=np.array([0.0, 0.0, 0.0, 0.0, 1.0]),
        none=0.0,
        wild=tuple(0.9 if b.values[0] < 950.0 else 0.0 for b in ev.boots),
        mode=(),
    )
    assert wild_on_both_sides(ev, post) == set()
    both = replace(post, wild=tuple(0.9 if b.k == 3 else 0.0 for b in ev.boots))
    assert wild_on_both_sides(ev, both) == {(0, 3), (4, 3)}


def test_low_boots_of_the_bad_end_are_a_share_of_its_boots() -> None:
    low, high = [0.9 * r for r in USUAL], USUAL
    state = a_range(*[(0, high)] * 12, *[(4, high), (4, low)] * 6, *[(2, high)] * 4)
    path = assess(state, POLICY).posterior.slow_path
    assert path is not None and path.unit == "boot"
    assert path.p > 0.5 and path.offset == pytest.approx(math.log(0.9), abs=0.02)
    assert path.spread == pytest.approx(0.1 * 0.5, abs=0.015)
