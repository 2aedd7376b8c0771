"""Which share of runs and boots a clean side excludes, as comparisons and bisections say it."""

from __future__ import annotations

import numpy as np
import pytest

from swingbot.core.bisect.decide.step import step
from swingbot.core.bisect.state import Conclude
from swingbot.core.bisect.thresholds import Policy
from swingbot.core.model.bisection import Observation
from swingbot.core.stats.compare import BootRuns, Rule, compare
from swingbot.core.stats.unseen_path import excluded, largest_unseen
from tests.simulate import a_state
from tests.worlds import SimulatedBench


def a_side(seed: int, runs: int = 10, boots: int = 10) -> list[BootRuns]:
    rng = np.random.default_rng(seed)
    return [
        BootRuns(k=k, values=tuple(100.0 * (1.0 + rng.normal(0.0, 0.005, runs))))
        for k in range(boots)
    ]


@pytest.mark.parametrize("n", [1, 2, 10, 100])
def test_the_largest_share_shows_nothing_in_one_of_twenty_cases(n: int) -> None:
    assert (1.0 - largest_unseen(n)) ** n == pytest.approx(0.05)


def test_one_run_a_boot_gives_one_bound() -> None:
    assert excluded(10, 10, "5 %") == "no path that is 5 % off in more than 26 % of boots"


def test_same_says_which_path_is_excluded() -> None:
    row = compare(a_side(1), a_side(2), Rule())
    assert row.verdict == "same"
    assert (row.reason or "").endswith("% off in more than 3 % of runs or 26 % of boots")
    ten = compare(a_side(1, runs=1), a_side(2, runs=1), Rule(min_effect_pct=2.0))
    assert ten.verdict == "same" and "off in more than 26 % of boots" in (ten.reason or "")


def test_same_with_far_off_runs_on_both_sides_excludes_no_path() -> None:
    sides = [a_side(1), a_side(2)]
    for side in sides:
        side[0] = BootRuns(k=0, values=(*side[0].values[:-1], 50.0))
    row = compare(sides[0], sides[1], Rule(min_effect_pct=2.0))
    assert "far off" in (row.reason or "") and "no path" not in (row.reason or "")


def test_not_reproduced_says_which_path_of_the_bad_end_is_excluded() -> None:
    state = a_state(SimulatedBench(commits=4))
    seen = [
        Observation(idx=idx, k=b.k, values=b.values, phase="ends")
        for idx in (0, 4)
        for b in a_side(idx + 3, boots=10)
    ]
    done = step(type(state)(points=state.points, observations=tuple(seen)), Policy())
    assert isinstance(done, Conclude) and done.conclusion.kind == "not_reproduced"
    assert "in the bad end no path that is " in done.conclusion.reason
    assert done.conclusion.reason.endswith("% off in more than 3 % of runs or 26 % of boots")


def test_one_point_is_not_one_points() -> None:
    shares = [BootRuns(k=k, values=(50.0, 50.2, 49.9)) for k in range(6)]
    row = compare(shares, shares, Rule(form="difference", points=True))
    assert row.verdict == "same" and " 1 point off " in (row.reason or "")
