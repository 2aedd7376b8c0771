"""Boots that print the same digits whichever kernel runs, and metrics that repeat honestly."""

from __future__ import annotations

import pytest

from swingbot.core.stats.compare import compare
from swingbot.core.stats.repeated_digits import repeated_digits
from swingbot.core.stats.rows import BootRuns, Rule

STUCK = (100.0, 100.0, 100.0)
BASE = [STUCK, (100.31,), STUCK, STUCK, STUCK, STUCK]
HEAD = [STUCK, STUCK, (90.12,), STUCK, STUCK, (90.12,)]


def test_a_stale_result_is_said() -> None:
    assert (repeated_digits([BASE, HEAD], paired=False) or "").startswith(
        "9 of 12 boots gave exactly 100, whichever kernel ran"
    )
    assert repeated_digits([BASE, HEAD], paired=True)
    runs = (99.87, 100.02, 100.11)
    assert (
        repeated_digits([[(100.3,), runs, runs], [runs, (90.12,), runs]], paired=False) or ""
    ).startswith("4 of 6 boots gave exactly 99.87,")
    two = [[(100.0,)] * 3 + [(99.5,)] * 3 + [(100.31,)], [(100.0,)] * 3 + [(99.5,)] * 3 + [(90.1,)]]
    assert "12 of 14 boots gave exactly 100 or 99.5," in (repeated_digits(two, paired=False) or "")
    assert repeated_digits([[(9412.37,)] * 3, [(9412.37,)] * 3], paired=False)


@pytest.mark.parametrize(
    "kernels",
    [
        [[(25.0,)] * 6, [(25.0,)] * 6],  # whole nanoseconds
        [[(1.25,)] * 6, [(1.25,)] * 5 + [(1.37,)]],  # a coarse clock, and one slow boot
        [[(300.0, 301.0)] * 4, [(300.0, 301.0)] * 4],  # whole numbers, and a slower first run
        [[(300.0, 301.0, 300.0)] * 2, [(300.0, 301.0, 300.0)] * 2],
        [[(0.0,)] * 6, [(0.0,)] * 5 + [(12.0,)]],  # events that are rare
        [[(100.01,)] * 4, [(90.12,)] * 4],  # a program that repeats, and a change
        [[(100.01,), (100.02,), (100.01,)], [(100.01,), (100.02,), (100.03,)]],
        [[(512.0, 513.0, 512.0)] * 3, [(512.0, 513.0, 512.0)] * 3 + [(519.0, 512.0, 513.0)]],
        [[(312500 / s,) for s in (0.512, 0.512, 0.513, 0.512, 0.512)]] * 2,  # of whole ms
        [[], []],
    ],
)
def test_what_repeats_honestly_says_nothing(kernels: list[list[tuple[float, ...]]]) -> None:
    assert repeated_digits(kernels, paired=False) is None


def test_a_program_repeats_by_design_where_the_clock_counts_instructions() -> None:
    assert repeated_digits([[(9412.37,)] * 3, [(9412.37,)] * 3], paired=True) is None


def test_a_counter_may_be_constant() -> None:
    side = [BootRuns(k=k, values=(34359738367.0,)) for k in range(3)]
    rule = Rule(klass="counter", better=None, min_effect_pct=5)
    assert compare(side, side, rule).verdict == "same"


def test_no_absence_of_a_change_is_claimed_from_them() -> None:
    sides = [
        [BootRuns(k=k, values=values) for k, values in enumerate(side)]
        for side in ([STUCK] * 5 + [(100.31,)], [STUCK] * 5 + [(99.62,)])
    ]
    row = compare(sides[0], sides[1], Rule(klass="throughput", better="higher", min_effect_pct=2))
    assert row.verdict == "unclear"
    assert "10 of 12 boots gave exactly 100" in (row.reason or "")
