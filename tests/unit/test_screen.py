"""Stage 1: what raises an alarm, and what must not."""

from __future__ import annotations

import numpy as np
import pytest

from swingbot.core.model.comparison_row import ComparisonRow, Side
from swingbot.core.plan import screen
from swingbot.core.plan.screen import (
    MetricHistory,
    SuspectedSwing,
    boots_to_extend,
    boots_wanted,
    suspect,
)
from swingbot.core.thresholds import SCREEN_BOOTS, SCREEN_FEWEST_TIPS


def tips(
    seed: int, n: int, sd: float = 0.003, slope: float = 0.0, level: float = 500.0
) -> list[float]:
    """Levels of n tips, the latest first; `slope` is the relative creep from one tip to the
    next."""
    rng = np.random.default_rng(seed)
    return [float(v) for v in level * np.exp(rng.normal(0.0, sd, n) - slope * np.arange(n))]


def against_history(
    tip: list[float], levels: list[float], min_effect: float
) -> SuspectedSwing | None:
    return screen.against_history(tip, MetricHistory(levels=levels, min_effect=min_effect))


def against_anchors(
    tip: list[float], levels: list[float], min_effect: float, day_sd: float = 0.0
) -> SuspectedSwing | None:
    return screen.against_anchors(
        tip, MetricHistory(levels=levels, min_effect=min_effect, day_sd=day_sd)
    )


def a_row(pct: float = 0.1, verdict: str = "same", p: float = 0.5) -> ComparisonRow:
    side = Side(boots=3, runs=3, mean=500.0, stddev=1.0)
    return ComparisonRow(
        better="higher",
        base=side,
        head=side,
        change_pct=pct,
        interval_pct=None,
        verdict=verdict,  # type: ignore[arg-type]  # a parameter of the test
        p=p,
    )


def test_a_tip_far_from_the_last_ones_raises_an_alarm_with_its_direction() -> None:
    found = against_history([470.0, 471.0, 469.0], tips(1, 30), 0.01)
    assert found is not None
    assert found.source == "history"
    assert found.effect == pytest.approx(-0.06, abs=0.005)
    assert "30 tips" in found.why


def test_few_tips_are_no_history() -> None:
    assert against_history([400.0], tips(2, SCREEN_FEWEST_TIPS - 1), 0.01) is None
    assert against_history([], tips(2, 30), 0.01) is None


def test_a_shift_below_the_minimum_raises_no_alarm_however_sure() -> None:
    assert against_history([496.0, 496.1, 495.9], tips(3, 30, sd=0.0005), 0.01) is None


def test_one_wild_boot_raises_no_alarm() -> None:
    assert against_history([500.0, 501.0, 380.0], tips(4, 30), 0.01) is None


def test_tips_that_repeat_to_the_last_digit_are_compared_without_infinite_certainty() -> None:
    assert against_history([500.0], [500.0] * 30, 0.01) is None
    assert against_history([460.0], [500.0] * 30, 0.01) is not None


def test_equal_tips_raise_false_alarms_at_the_stated_rate() -> None:
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(4000):
        past = np.exp(rng.normal(0.0, 0.02, 30))
        alarms += (
            against_history([float(np.exp(rng.normal(0.0, 0.02)))], [float(v) for v in past], 0.0)
            is not None
        )
    assert alarms <= 4000 * 0.005 + 4 * (4000 * 0.005) ** 0.5


def test_a_creep_is_seen_against_an_older_tip_and_not_against_the_last_ones() -> None:
    levels = tips(6, 40, slope=-0.001)  # each tip a thousandth below the one before it
    now = [v * 0.999 for v in tips(7, 3, sd=0.001)]
    assert against_history(now, levels[:10], 0.02) is None
    found = against_anchors(now, levels, 0.02)
    assert found is not None
    assert (found.source, found.anchor) == ("creep", 29)
    assert found.effect == pytest.approx(-0.03, abs=0.008)


def test_a_creep_is_not_seen_where_days_differ_by_as_much() -> None:
    levels, now = tips(6, 40, slope=-0.001), [v * 0.999 for v in tips(7, 3, sd=0.001)]
    assert against_anchors(now, levels, 0.02, day_sd=0.002) is not None
    assert against_anchors(now, levels, 0.02, day_sd=0.01) is None


def test_one_wild_boot_is_no_creep() -> None:
    levels = tips(8, 40)
    assert against_anchors([500.0, 501.0, 300.0], levels, 0.01) is None
    assert against_anchors([400.0, 401.0, 402.0], [400.0, *levels], 0.01) is not None


def test_two_odd_tips_of_old_are_no_anchor() -> None:
    levels = tips(9, 40)
    for n in (8, 9, 28, 29):
        levels[n] *= 1.3
    assert against_anchors([500.0] * 3, levels, 0.01) is None


def test_a_tip_that_wanders_along_with_the_ones_before_it_raises_no_alarm() -> None:
    rng = np.random.default_rng(10)
    away = [0.0]
    for _ in range(30):
        away.append(0.9 * away[-1] + float(rng.normal(0.0, 0.004)))
    levels = [float(500.0 * np.exp(v)) for v in reversed(away)]
    assert against_history([levels[0] * 1.004] * 3, levels, 0.01) is None
    assert against_history([levels[0] * 1.05] * 3, levels, 0.01) is not None


def test_what_the_first_boots_raise_gets_more_boots_and_must_be_seen_in_them() -> None:
    past = MetricHistory(levels=tips(11, 30), min_effect=0.01, first=3)
    odd = [480.0, 481.0, 479.0]
    assert boots_wanted(a_row(), odd, 3, past) == 4
    assert boots_wanted(a_row(), [*odd, 480.0], 4, past) is None
    assert boots_wanted(a_row(), [500.0] * 3, 3, past) is None
    assert suspect(a_row(), [*odd, 482.0], past) is not None
    assert suspect(a_row(), [*odd, 500.0], past) is None


def test_a_change_against_the_base_gets_more_boots_and_a_smaller_p() -> None:
    past = MetricHistory(levels=[], min_effect=0.01, first=3)
    worse = a_row(-5.0, "worse", 0.002)
    assert boots_wanted(worse, [475.0] * 3, 3, past) == 4
    assert suspect(worse, [475.0] * 4, past) is not None
    assert suspect(a_row(-5.0, "worse", 0.0049), [475.0] * 4, past) is None


def test_boots_that_repeat_are_not_asked_for_again() -> None:
    past = MetricHistory(levels=tips(11, 30), min_effect=0.01)
    assert boots_wanted(a_row(-5.0, "worse", 0.004), [475.0] * 3, 3, past) is None
    assert suspect(a_row(-5.0, "worse", 0.0049), [475.0] * 3, past) is not None


def test_a_steady_branch_has_no_creep() -> None:
    assert all(against_anchors(tips(100 + n, 3), tips(n, 100), 0.01) is None for n in range(100))


def test_zeros_and_negatives_are_no_trouble() -> None:
    assert against_history([0.0], [0.0] * 12, 0.01) is None
    assert against_history([50.0], [-1.0, 1.0] * 6, 0.01) is not None


@pytest.mark.parametrize(
    ("boots", "more", "effect", "expected"),
    [
        (3, 2, 0.05, 5),
        (3, 1, 0.05, 5),
        (3, 9, -0.05, SCREEN_BOOTS),
        (3, 10, 0.05, None),
        (3, None, 0.05, None),
        (3, 2, 0.005, None),
        (SCREEN_BOOTS, 1, 0.05, None),
    ],
)
def test_an_unclear_row_is_extended_to_what_settles_it_within_the_budget(
    boots: int, more: int | None, effect: float, expected: int | None
) -> None:
    assert boots_to_extend(boots, more, effect, 0.01) == expected
