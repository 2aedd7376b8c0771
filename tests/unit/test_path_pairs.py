"""Stage 2 of a suspected swing: far-off runs of its pairs are evidence beside their means."""

from __future__ import annotations

import math

import numpy as np
import pytest

from swingbot.core.plan.swings import pair_differences, path_odds
from swingbot.core.stats.compare import BootRuns
from swingbot.core.stats.evidence import UNKNOWN, Decision, EvidenceThresholds, sequential
from swingbot.core.stats.path_share import two_shares

WORSE = EvidenceThresholds(min_effect=math.log1p(0.01), direction=-1)


def boots(rng: np.random.Generator, share: float, count: int = 20) -> list[BootRuns]:
    """Ten runs each, of which a share takes twice as long."""
    return [
        BootRuns(
            k=k,
            values=tuple(
                math.exp(rng.normal(0.0, 0.005))
                * (100.0 + rng.normal(0.0, 1.0, 10))
                * np.where(rng.random(10) < share, 0.5, 1.0)
            ),
        )
        for k in range(count)
    ]


def decided(
    base: list[BootRuns],
    head: list[BootRuns],
    gate: EvidenceThresholds = WORSE,
    *,
    counted: bool = True,
) -> Decision:
    odds = path_odds(base, head, "ratio", gate.min_effect) if counted else []
    return sequential(pair_differences(base, head, "ratio"), UNKNOWN, gate, odds)


def test_one_run_in_seven_at_half_speed_is_accepted_on_its_counts() -> None:
    rng = np.random.default_rng(1)
    base, head = boots(rng, 0.0), boots(rng, 0.15)
    decision, mean = decided(base, head), decided(base, head, counted=False)
    assert decision.answer == "accept" and decision.pairs < mean.pairs
    assert "a share of the runs is far off" in decision.reason
    better = EvidenceThresholds(min_effect=WORSE.min_effect, direction=1)
    assert decided(base, head, better).answer == "reject"


def test_later_pairs_do_not_change_what_earlier_ones_showed() -> None:
    rng = np.random.default_rng(2)
    base, head = boots(rng, 0.0), boots(rng, 0.15)
    first = decided(base, head)
    assert decided(base[: first.pairs], head[: first.pairs]) == first


@pytest.mark.parametrize("seed", range(8))
def test_the_same_share_of_slow_runs_on_both_sides_is_no_swing_by_its_counts(seed: int) -> None:
    rng = np.random.default_rng([seed, 3])
    base, head = boots(rng, 0.15), boots(rng, 0.15)
    assert decided(base, head).answer == decided(base, head, counted=False).answer


def test_pairs_without_far_off_runs_are_decided_by_their_means() -> None:
    rng = np.random.default_rng(4)
    base, head = boots(rng, 0.0), boots(rng, 0.0)
    assert path_odds(base, head, "ratio", WORSE.min_effect) == [1.0] * 20
    assert decided(base, head) == decided(base, head, counted=False)


def test_boots_without_values_or_a_number_have_no_odds() -> None:
    fine, none = BootRuns(k=0, values=(1.0, 2.0, 3.0)), BootRuns(k=0, values=())
    assert path_odds([fine], [none], "ratio", 0.01) == []
    endless = BootRuns(k=0, values=(1.0, math.inf, 3.0))
    assert path_odds([fine], [endless], "ratio", 0.01) == []
    below = BootRuns(k=0, values=(-1.0, 0.0, 3.0))
    assert path_odds([fine], [below], "difference", 0.01) == [1.0]


def test_odds_of_many_runs_are_finite_and_grow_with_the_difference() -> None:
    units, head = np.full(80, 100), np.repeat([False, True], 40)
    odds = [two_shares(np.where(head, behind, 10), units, head) for behind in (10, 20, 60)]
    assert odds[0] < 1.0 < odds[1] < odds[2] and math.isfinite(odds[2])
