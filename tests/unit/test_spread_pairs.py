"""Stage 2 of a suspected change of the spread: what pairs of boots decide."""

from __future__ import annotations

import math

import numpy as np
import pytest

from swingbot.core.bisect.thresholds import SPREAD_PAIRS
from swingbot.core.plan.swings import SpreadDecision, decide_spread, direction_of_spread
from swingbot.core.stats.compare import BootRuns


def boots(rng: np.random.Generator, count: int, sd: float, level: float = 100.0) -> list[BootRuns]:
    return [
        BootRuns(k=k, values=(level * math.exp(float(rng.normal(0.0, sd))),)) for k in range(count)
    ]


def decided(base_sd: float, head_sd: float, pairs: int, *, wider: bool = True) -> SpreadDecision:
    rng = np.random.default_rng(5)
    sides = boots(rng, pairs, base_sd), boots(rng, pairs, head_sd)
    return decide_spread(*sides, "ratio", wider=wider)


def test_three_times_the_spread_is_accepted_at_an_unchanged_level() -> None:
    decision = decided(0.01, 0.03, SPREAD_PAIRS[-1])
    assert decision.answer == "accept"
    assert decision.pairs in SPREAD_PAIRS
    assert decision.spread_ratio == pytest.approx(3.0, rel=0.4)
    assert abs(decision.mean) < 0.02
    assert decision.reason.endswith(f"times the spread between boots in {decision.pairs} pairs")


def test_later_pairs_do_not_change_what_earlier_ones_showed() -> None:
    rng = np.random.default_rng(6)
    base, head = boots(rng, 32, 0.01), boots(rng, 32, 0.08)
    first = decide_spread(base, head, "ratio", wider=True)
    again = decide_spread(base[: first.pairs], head[: first.pairs], "ratio", wider=True)
    assert first.answer == again.answer == "accept"
    assert first.pairs == again.pairs < 32
    assert first.spread_ratio == again.spread_ratio


@pytest.mark.parametrize(("pairs", "answer"), [(8, "more"), (31, "more"), (32, "reject")])
def test_equal_spreads_get_more_pairs_until_there_are_enough(pairs: int, answer: str) -> None:
    decision = decided(0.02, 0.02, pairs)
    assert (decision.answer, decision.pairs, decision.spread_ratio) == (answer, pairs, None)


def test_the_other_direction_is_not_what_was_suspected() -> None:
    assert decided(0.05, 0.01, 32).answer == "reject"
    assert decided(0.05, 0.01, 32, wider=False).answer == "accept"


def test_no_boots_are_too_few() -> None:
    assert decide_spread([], [], "ratio", wider=True).answer == "more"


@pytest.mark.parametrize(
    ("times", "better", "direction"),
    [(3.0, "lower", "worse"), (3.0, "higher", "worse"), (0.3, "lower", "better")],
)
def test_a_larger_spread_is_worse_whatever_the_level_should_be(
    times: float, better: str, direction: str
) -> None:
    assert direction_of_spread(times, better) == direction
    assert direction_of_spread(times, None) == "changed"
