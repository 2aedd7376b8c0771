"""Watching a branch is wrong at most once in 10 000 tips, costs few boots for nothing,
and sees what it should.

The worlds and the tables: `tests/calibration/watching.py`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest

from swingbot.core.model.records import Order
from swingbot.core.plan.metric_rules import metric_of, rule_of
from swingbot.core.plan.screen import TipBoots
from tests.calibration.watching import (
    BOOTS,
    WORLDS,
    accepted,
    judged,
    levels_after,
    spread_alarms,
    spread_found,
    spreads_after,
    swings,
    watch,
)
from tests.contract.store.world import METRIC, UNIT_JOB, a_comparison, a_job, a_lab, a_testbox
from tests.fakes.lab import run_files, tar
from tests.fakes.memory_lab import MemoryLab

ALLOWED_SUSPECTED, ALLOWED_SWINGS = 0.01, 1e-4


@pytest.mark.parametrize(
    "world",
    ["2 %", "1 %, 3 % of boots at 40 %", "2 %, heavy tails", "testbox wanders, rho 0.95, 2 %"],
)
def test_a_branch_that_nothing_happens_to_is_left_alone(world: str) -> None:
    found = watch(WORLDS[world], branches=4, seed=11)
    passed = accepted(WORLDS[world], 6000, record=True, seed=12)
    # Three standard errors of each rate, for so few tips.
    assert found.share() <= ALLOWED_SUSPECTED + 3 * math.sqrt(ALLOWED_SUSPECTED / found.tips)
    assert swings(found, passed) <= 2 * ALLOWED_SWINGS


def test_a_change_of_two_and_a_half_spreads_is_suspected() -> None:
    found = watch(WORLDS["2 %"], branches=40, effect=-0.05, seed=13)
    assert found.found_by(1) >= 0.8
    assert found.found_by(3) >= 0.9


@pytest.mark.parametrize("world", ["2 %", "t with 2 df, 1 %", "testbox wanders, rho 0.95, 2 %"])
def test_the_spread_of_equal_kernels_raises_no_alarm(world: str) -> None:
    """At most 1 alarm in 10 000 tips; of 6000 more than 5 come with P below 1e-4."""
    assert spread_alarms(WORLDS[world], 6000, seed=14) <= 5


def test_three_times_the_spread_between_boots_is_noticed_within_40_tips() -> None:
    found = spread_found("2 %", 3.0, branches=20, seed=15)
    assert sum(tips is not None for tips in found) >= 19


class NoisyLab(MemoryLab):
    """A testbox whose boots differ, and which is slower for a while, whatever kernel it boots."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        testbox = dataclasses.replace(a_testbox(), repeatable=False, perturbations=None)
        self.lab = dataclasses.replace(
            self.lab,
            settings=dataclasses.replace(self.lab.settings, bisect_improvements=True),
        )
        self.boot_on([testbox])

    def _boot(self, order: Order) -> dict[str, Any]:
        number = int((order.series or "c0").removeprefix("c"))
        files: dict[str, bytes] = {}
        for job in self.store.db.specs[order.spec or ""]:
            for run in job.numbers:
                rate = speed(number, order.variant, order.k or 0)
                watched = number and self.store.db.comparisons[number].comparison.kind == "watch"
                rate *= slower(self.tip) if watched else 1.0
                files |= run_files(f"{job.name}/{run}", rate, 1)
        return {
            "status": "up",
            "facts": {"uname": "6.1.0-fake"},
            "files": {"results.tar": self.artifacts.put(tar(files))},
        }

    tip = 0  # that is being watched


def speed(comparison: int, variant: int, k: int) -> float:
    rng = np.random.default_rng([comparison, variant, k])
    return 1e5 * math.exp(float(rng.normal(0.0, 0.02)) - 0.2 * (rng.random() < 0.04))


def slower(tip: int) -> float:
    return 0.92 if 15 <= tip < 30 else 1.0


class TableTestbox:
    """The boots that `NoisyLab` gives one watch comparison, in the order base, tip, base, ..."""

    def __init__(self, comparison: int, sides: tuple[int, int], tip: int) -> None:
        self._next = (
            slower(tip) * speed(comparison, side, k) for k in itertools.count() for side in sides
        )

    def boot(self, level: float) -> float:
        return next(self._next) * math.exp(level)


def test_the_simulated_branch_is_judged_as_the_use_cases_judge_it() -> None:
    tips, memory = 45, NoisyLab()
    with memory.store.transaction() as tx:
        world = a_lab(tx, tips + 1)
    (testbox,) = memory.lab.catalogue.testboxes.present.values()
    rule = rule_of(testbox, metric_of(memory.lab.catalogue.programs, METRIC), a_job())
    levels: list[float] = []
    spreads: list[TipBoots] = []
    asked_more = alarms = 0
    for tip in range(tips):
        sides = world.kernels[tip].id, world.kernels[tip + 1].id
        with memory.store.transaction() as tx:
            number = a_comparison(
                tx, world, kind="watch", base=sides[0], head=sides[1], boots=BOOTS
            )
        memory.tip = tip
        memory.run()
        seen = judged(TableTestbox(number, sides, tip), 0.0, 0.0, levels, spreads, rule)
        levels, spreads = levels_after(seen, levels), spreads_after(seen, spreads)
        with memory.store.transaction() as tx:
            comparison = tx.comparisons.get(number)
            (row,) = [r for r in tx.comparisons.rows(number) if r.headline]
        noted = [r.swing for r in memory.store.db.swings.values() if r.swing.comparison == number]
        assert comparison is not None
        assert (row.unit_job, row.metric) == (UNIT_JOB, METRIC)
        assert comparison.boots == seen.boots
        assert row.head.mean == pytest.approx(seen.level, rel=1e-6)
        assert [s.source for s in noted] == ([seen.alarm.source] if seen.alarm else [])
        asked_more += seen.boots > BOOTS
        alarms += seen.alarm is not None
    assert asked_more >= 3
    assert alarms >= 2
