"""The rows of a table on one testbox, of arms whose boots come from nowhere in particular."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.plan.metric_rules import rule_on
from swingbot.core.table.rows import (
    MeasuredArm,
    MeasuredBoot,
    TestboxRule,
    rows_of,
    rows_without_numbers,
)
from swingbot_jobs.contract.unit_job import UnitJob
from tests.builders import METRIC, UNIT_JOB
from tests.programs import PROGRAMS

JOB = UnitJob(name=UNIT_JOB, program="page-fault", params={}, runs=3)
RULE = TestboxRule(
    testbox="vm",
    label="",
    paired=False,
    jobs={UNIT_JOB: JOB},
    programs=PROGRAMS,
    of_metric=lambda job, metric: rule_on(metric, job, repeatable=False),
)


def an_arm(name: str, level: float, *, up: int = 4, boots: int = 4, **more: Any) -> MeasuredArm:
    """Boots of three runs each; those from number `up` on gave nothing."""
    own = [
        MeasuredBoot(
            k=k,
            facts={},
            values={(UNIT_JOB, METRIC): [level + k, level + 1 + k, level + k]} if k < up else {},
        )
        for k in range(boots)
    ]
    return MeasuredArm(**{"name": name, "image": name, "jobs": [JOB], "boots": own} | more)


def judged(*arms: MeasuredArm, rule: TestboxRule = RULE) -> dict[tuple[str, int], ComparisonRow]:
    return {(row.against, row.arm): row for row in rows_of(arms, rule)}


def test_each_reference_has_its_rows_a_row_by_name_too() -> None:
    arms = [an_arm("a", 1000), an_arm("b", 900), an_arm("c", 1000)]
    rows = judged(*arms, rule=replace(RULE, against=("first", "b")))
    assert {key: (row.reference, row.verdict) for key, row in rows.items()} == {
        ("first", 1): (0, "worse"),
        ("first", 2): (0, "same"),
        ("b", 0): (1, "better"),
        ("b", 2): (1, "better"),
    }


def test_boots_that_gave_nothing_count_as_lost_runs() -> None:
    row = judged(an_arm("a", 1000), an_arm("b", 900, up=2))["first", 1]
    assert row.verdict == "invalid"
    assert "6 of 12 runs of head gave no result" in (row.reason or "")


def test_one_image_is_identical_unless_its_boots_ran_something_else() -> None:
    same = judged(an_arm("a", 1000), an_arm("b", 900, image="a"))["first", 1]
    assert (same.verdict, same.reason) == ("same", "the two kernel images are byte-identical")
    other = judged(an_arm("a", 1000), an_arm("b", 900, image="a", spec="x"))["first", 1]
    assert other.verdict == "worse"


@pytest.mark.parametrize("unit", ["ops/s", None])
def test_numbers_in_two_units_are_not_compared(unit: str | None) -> None:
    own = {} if unit is None else {(UNIT_JOB, METRIC): unit}
    arms = an_arm("a", 1000, units={(UNIT_JOB, METRIC): "ms"}), an_arm("b", 900, units=own)
    row = judged(*arms)["first", 1]
    assert (row.verdict == "invalid") == (unit is not None)


def test_an_added_arm_is_compared_over_the_boots_that_it_shares() -> None:
    row = judged(an_arm("a", 1000, boots=6, up=6), an_arm("b", 900, first_k=2))["first", 1]
    assert (row.base.boots, row.head.boots) == (4, 2)


def test_a_kernel_that_does_not_exist_has_a_row_that_says_why() -> None:
    gone = an_arm("b", 0, up=0, boots=0, image=None, trouble="does not build: x.c:1")
    arms = [an_arm("a", 1000), gone, an_arm("c", 900)]
    rule = replace(RULE, against=("above",))
    assert {key: row.reference for key, row in judged(*arms, rule=rule).items()} == {
        ("above", 2): 0
    }
    (row,) = rows_without_numbers(arms, rule)
    assert (row.arm, row.reason) == (1, "the kernel does not build: x.c:1")


def test_a_count_that_perf_extrapolated_says_so_in_its_row() -> None:
    def counted(name: str, level: float, share: float | None) -> MeasuredArm:
        values = {(UNIT_JOB, "perf-stat.cycles"): [level, level + 1]}
        if share is not None:
            values[UNIT_JOB, "perf-stat.running_pct.cycles"] = [share, 40.0]
        return MeasuredArm(
            name=name,
            image=name,
            jobs=[JOB],
            boots=[MeasuredBoot(k=k, facts={}, values=values) for k in range(4)],
        )

    (row,) = judged(counted("a", 1000.0, 10.0), counted("b", 900.0, None)).values()
    assert row.metric == "perf-stat.cycles", "the share is no row of its own"
    assert "extrapolated by perf: counted in 10 % of the time" in (row.reason or "")
    (row,) = judged(counted("a", 1000.0, None), counted("b", 900.0, None)).values()
    assert "extrapolated" not in (row.reason or "")
