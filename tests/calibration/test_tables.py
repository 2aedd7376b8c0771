"""Do the rows of a table hold together as often as they say? The long form is `python -m
tests.calibration.tables 10000`.
"""

from __future__ import annotations

import pytest

from tests.calibration.tables import WORLDS, tally
from tests.calibration.test_comparisons import most

TABLES = 300
STATED = 0.005
# Two kernels are one comparison: four boots fall into modes, and noisy sides look quiet,
# a little more often than that.
MISSED = 0.05


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("rule", "arms", "boots"), [("above", 8, 5), ("first", 5, 4)])
def test_rows_of_equal_kernels_hold_together(world: str, rule: str, arms: int, boots: int) -> None:
    found = tally(WORLDS[world], rule, arms, boots, TABLES)
    assert found.wrong <= most(TABLES * STATED)
    assert found.missed <= most(TABLES * MISSED)


@pytest.mark.parametrize("world", ["boots 2 %", "one arm 3 x as noisy", "pairs"])
@pytest.mark.parametrize("effect", ["step", "up and back"])
def test_rows_that_change_hold_together(world: str, effect: str) -> None:
    found = tally(WORLDS[world], "above", 6, 6, TABLES, effect=effect)
    assert found.wrong <= most(TABLES * STATED)
    assert found.missed <= most(TABLES * MISSED)


@pytest.mark.parametrize(("looks", "stated"), [(2, 1), (4, 1), (2, 2), (4, 4), (4, 2)])
@pytest.mark.parametrize(("rule", "arms"), [("above", 2), ("above", 6)])
def test_a_table_that_is_extended_claims_no_more_than_one_that_is_not(
    rule: str, arms: int, looks: int, stated: int
) -> None:
    found = tally(WORLDS["pairs"], rule, arms, 4, TABLES, looks=looks, stated=stated)
    assert found.wrong <= most(TABLES * STATED)
    if looks <= stated:
        assert found.missed <= most(TABLES * MISSED)


def test_stated_looks_find_what_one_look_does_not() -> None:
    once, again = (
        tally(WORLDS["boots 2 %"], "above", 6, 4, 100, effect="step", looks=looks, stated=3)
        for looks in (1, 3)
    )
    assert again.seen > 1.5 * once.seen


def test_a_long_table_claims_no_more_than_a_short_one() -> None:
    found = tally(WORLDS["boots 2 %"], "above", 40, 3, 60, alone=True)
    assert found.wrong <= most(60 * STATED)
    assert found.missed <= most(60 * MISSED)
    assert found.missed_alone >= 0.4 * 60


def test_a_common_spread_finds_more_than_bonferroni() -> None:
    found = tally(WORLDS["boots 2 %"], "above", 24, 4, 150, effect="step", alone=True)
    assert found.seen > 1.2 * found.seen_bonferroni
    assert found.seen < found.seen_alone
