"""Anchors distinguish a testbox that moved from one that did not."""

from __future__ import annotations

import numpy as np
import pytest

from swingbot.core.model.noise import NoiseRecord, Spread
from swingbot.core.plan.anchors import moved

RECORD = NoiseRecord(boot_mean=Spread(sd=0.01, df=40))


def anchor(seed: int, n: int, sd: float = 0.01, level: float = 800.0) -> list[float]:
    return [float(v) for v in level * np.exp(np.random.default_rng(seed).normal(0.0, sd, n))]


def test_a_level_beyond_four_standard_deviations_is_a_move_with_its_direction() -> None:
    assert moved(anchor(1, 8), anchor(2, 2, level=740.0), RECORD, 0.02) is not None
    reason = moved(anchor(1, 8), anchor(2, 2, level=860.0), RECORD, 0.02)
    assert reason is not None
    assert "above its level of 8 earlier boots" in reason


def test_boots_that_spread_more_than_they_did_are_a_move() -> None:
    reason = moved(anchor(3, 8), [720.0, 880.0, 725.0, 878.0], RECORD, 0.02)
    assert reason is not None
    assert "spread" in reason


def test_a_steady_testbox_is_left_in_peace() -> None:
    assert all(
        moved(anchor(2 * n, 10), anchor(2 * n + 1, 2), RECORD, 0.02) is None for n in range(2000)
    )


def test_a_shift_that_hurts_nobody_is_no_move() -> None:
    tight = NoiseRecord(boot_mean=Spread(sd=1e-5, df=100))
    assert moved([800.0] * 4, [800.9] * 2, tight, 0.02) is None
    assert moved([800.0] * 4, [812.0] * 2, tight, 0.02) is not None


def test_days_that_differ_are_no_move() -> None:
    daily = NoiseRecord(boot_mean=Spread(sd=0.002, df=40), day=Spread(sd=0.02, df=20))
    steady = NoiseRecord(boot_mean=Spread(sd=0.002, df=40))
    assert moved(anchor(5, 8, sd=0.002), anchor(6, 2, sd=0.002, level=824.0), daily, 0.02) is None
    assert (
        moved(anchor(5, 8, sd=0.002), anchor(6, 2, sd=0.002, level=824.0), steady, 0.02) is not None
    )


@pytest.mark.parametrize(
    ("before", "now"), [([], [1.0]), ([1.0], []), ([800.0], [1.0]), ([800.0, float("nan")], [1.0])]
)
def test_too_little_known_is_no_accusation(before: list[float], now: list[float]) -> None:
    assert moved(before, now, None, 0.02) is None
