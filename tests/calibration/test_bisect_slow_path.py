"""A commit that makes some runs slow and leaves the others as they were."""

from __future__ import annotations

import math

import pytest

from tests.calibration.families import FAMILIES
from tests.calibration.score import judge
from tests.simulate import Ended, a_state, bisect_to_the_end, known_noise
from tests.worlds import SimulatedBench


def ended(seed: int, path_steps: dict[int, float], before: float = 0.0) -> Ended:
    bench = SimulatedBench(
        commits=16,
        culprit=None,
        path_steps=path_steps,
        path_before=before,
        runs=10,
        run_noise=0.01,
        boot_noise=0.005,
        seed=seed,
    )
    return bisect_to_the_end(bench, a_state(bench, noise=known_noise(bench)))


@pytest.mark.parametrize(("seed", "culprit"), [(1, 9), (2, 1), (4, 16)])
def test_one_run_in_seven_at_half_speed_is_found_and_named(seed: int, culprit: int) -> None:
    done = ended(seed, {culprit: 1 / 7})
    said = done.conclusion
    assert (said.kind, said.members) == ("culprit", (culprit,)), said.reason
    assert said.probability is not None and said.probability > 0.9
    assert "1 run in" in said.reason and "lower than the others" in said.reason
    assert said.interval_pct is not None
    low, high = said.interval_pct
    assert low <= 100 * math.expm1(math.log1p(-0.5 / 7)) <= high
    assert done.boots < 60


@pytest.mark.parametrize("seed", [1, 2])
def test_slow_runs_of_all_kernels_are_no_change(seed: int) -> None:
    assert ended(seed, {1: 1 / 7}, before=1 / 7).conclusion.kind == "not_reproduced"


@pytest.mark.parametrize("seed", [6, 9])
def test_ten_percent_in_six_boots_of_ten_are_not_denied(seed: int) -> None:
    (family,) = (f for f in FAMILIES if f.name == "-10 % in 60 % of boots")
    verdict = judge(family, seed)
    assert (verdict.kind, verdict.right) == ("culprit", True)
