"""A commit that changes the spread of boots and leaves the mean as it was."""

from __future__ import annotations

import json

import pytest

from swingbot.app.bisect_run.result_json import exit_status
from swingbot.core.bisect.posterior.own_spreads import KernelSpread, own_spreads
from swingbot.core.bisect.state import Conclude, Conclusion
from swingbot.core.bisect.tell import journal
from swingbot.core.bisect.thresholds import Policy
from tests.calibration.families import DIFFICULT
from tests.calibration.score import judge
from tests.simulate import Ended, a_state, bisect_to_the_end, known_noise
from tests.worlds import SimulatedBench


def ended(
    seed: int, spread_steps: dict[int, float], effect: float = 0.0, policy: Policy | None = None
) -> Ended:
    bench = SimulatedBench(
        commits=24,
        culprit=None,
        effect=effect,
        spread_steps=spread_steps,
        runs=1,
        seed=seed,
        run_noise=0.01,
        boot_noise=0.02,
    )
    return bisect_to_the_end(bench, a_state(bench, noise=known_noise(bench)), policy)


@pytest.mark.parametrize(("seed", "culprit"), [(1, 8), (2, 15)])
def test_three_times_the_noise_at_the_same_mean_is_found_and_named(seed: int, culprit: int) -> None:
    conclusion = ended(seed, {culprit: 3.0}).conclusion
    assert (conclusion.kind, conclusion.members) == ("culprit", (culprit,))
    assert conclusion.spread_ratio is not None and 1.8 < conclusion.spread_ratio < 7.0
    assert conclusion.reason.startswith(
        f"same mean, {conclusion.spread_ratio:.2g} times the spread between boots"
    )
    interval = conclusion.interval_pct
    assert interval is not None and interval[0] < 0.0 < interval[1]
    assert conclusion.probability is not None and conclusion.probability >= 0.99


def test_a_change_of_spread_less_certain_than_was_asked_for_names_no_commit() -> None:
    conclusion = ended(2, {15: 3.0}, policy=Policy(confidence=0.9999, max_boots=120)).conclusion
    assert (conclusion.kind, conclusion.culprits) == ("inconclusive", ())
    assert conclusion.suspect == 15 and conclusion.settled_by == "more boots"
    assert conclusion.probability is not None and 0.5 < conclusion.probability < 0.9999


@pytest.mark.parametrize("seed", [2002, 2012, 2019, 2023])
def test_kernels_that_have_a_noise_of_their_own_get_no_culprit(seed: int) -> None:
    """The spread of two neighbours differs for certain, but it does not last."""
    family = next(
        f for f in DIFFICULT if f.name.startswith("noise of kernels 0.4 to 2.7 times, no")
    )
    verdict = judge(family, seed)
    assert (verdict.kind, verdict.named) == ("inconclusive", ())
    assert verdict.suspect is None or verdict.suspect[0] < 0.95


def test_boots_of_other_kernels_tell_a_step_from_spreads_of_their_own() -> None:
    def own(*spreads: float, left: int = 1) -> float:
        kernels = [KernelSpread(p, 11 * s**2, 11) for p, s in enumerate(spreads)]
        return own_spreads(kernels, left)

    step = own(0.01, 0.01, 0.03, 0.03, 0.03)
    assert step < 0.2 < 0.9 < own(0.03, 0.01, 0.03, 0.01, 0.02)
    assert own(0.01, 0.01, 0.01, 0.03, 0.03, 0.03, left=2) < step, "more kernels are surer"
    assert own(0.0, 0.0, 0.0, 0.0) <= 0.5, "values that repeat have no spread at all"
    alone = KernelSpread(0, 0.0, 0)
    assert own_spreads([alone, KernelSpread(1, 9e-4, 9)], left=0) == pytest.approx(1 / 3, abs=0.1)


def test_equal_noise_is_never_called_a_change_of_spread() -> None:
    conclusion = ended(5, {}).conclusion
    assert conclusion.kind == "not_reproduced" and conclusion.spread_ratio is None
    assert "spread" not in conclusion.reason


def test_the_factor_is_in_the_journal_and_null_where_there_is_none() -> None:
    plain = Conclusion(kind="culprit", reason="r")
    louder = Conclusion(kind="culprit", reason="r", spread_ratio=3.0)
    assert journal.decision(Conclude(conclusion=plain))["spread_ratio"] is None
    assert json.loads(journal.text(journal.decision(Conclude(conclusion=louder))))[
        "spread_ratio"
    ] == pytest.approx(3.0)


def test_a_commit_that_makes_boots_less_repeatable_is_worse_for_scripts() -> None:
    assert exit_status({"status": "culprit", "spread_ratio": 3.0, "culprits": []}) == 3
    assert exit_status({"status": "credible_set", "spread_ratio": 3.0, "culprits": []}) == 4
