"""Rows of monitors in LKP's table: which are shown, in which order, and how many are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swingbot.core.report.parts.lkp_monitors import changed, monitor_rows, shown
from swingbot.core.report.table.formats import FORMS
from swingbot.core.report.table.sheet import Sheet, sheet_of_table
from tests.table_documents import METRIC, UNIT_JOB, a_table

Sides = tuple[Sequence[float], Sequence[float]]
VALUES = st.lists(st.floats(0, 1e9), min_size=3, max_size=70)


@pytest.mark.parametrize(
    ("base", "head", "answer"),
    [
        ((100, 101, 102), (110, 111, 112), True),
        ((110, 111, 112), (100, 101, 102), True),
        ((100, 101, 120), (110, 111, 112), False),  # a run of base is above the median of head
        ((100, 101, 111), (110, 112, 113), True),  # ranges may overlap a little
        ((100, 101, 102, 103), (103, 104, 105, 106), True),
        ((100, 100), (200, 200), False),  # two runs on both sides
        ((100, 100, 100), (200,), True),
        ((), (200, 200, 200), False),
        ((7, 7, 7), (7, 7, 7), False),
    ],
)
def test_a_number_changed_where_no_run_reaches_the_other_sides_median(
    base: Sequence[float], head: Sequence[float], answer: bool
) -> None:
    assert changed(base, head) is answer


@given(VALUES)
def test_equal_runs_never_changed(values: list[float]) -> None:
    assert not changed(values, values)


@given(VALUES, VALUES)
def test_swapping_the_sides_of_few_runs_changes_nothing(
    base: list[float], head: list[float]
) -> None:
    base, head = base[:30], head[:30]
    assert changed(base, head) is changed(head, base)


def test_one_wild_run_in_32_hides_no_change() -> None:
    base, head = [100.0] * 31 + [900.0], [200.0] * 32
    assert changed(base, head)
    assert not changed(base[1:], head)  # 31 runs are not trimmed


@pytest.mark.parametrize(
    ("metric", "base", "head", "answer"),
    [
        ("perf-stat.context-switches", 1000.0, 1020.0, True),
        ("perf-stat.context-switches", 1000.0, 1009.0, False),
        ("meminfo.Active", 1000.0, 1040.0, False),  # 5 % for what LKP calls no perf metric
        ("meminfo.Active", 1000.0, 1060.0, True),
        ("proc-vmstat.pgfault", 1000.0, 0.0, True),
        ("proc-vmstat.compact_stall", 2.0, 9.0, False),  # a handful of events
        ("interrupts.CAL", 300.0, 600.0, True),
        ("lock-contention.contended", 3.0, 60.0, True),
        ("perf-profile.self.cycles.memset", 0.50, 0.52, True),
        ("buddyinfo.after.0.Normal.3", 1000.0, 9000.0, False),
        ("perf-profile.beside.netperf.Throughput_Mbps", 1000.0, 9000.0, False),
    ],
)
def test_a_change_must_be_large_enough_for_its_monitor(
    metric: str, base: float, head: float, answer: bool
) -> None:
    assert shown(metric, [base] * 3, [head] * 3) is answer


def test_monitors_with_few_changes_come_first_and_what_does_not_fit_is_counted() -> None:
    given = {
        f"proc-vmstat.n{n:03}": ([1000.0] * 3, [1000.0 * (1.1 + n / 100)] * 3) for n in range(60)
    }
    given |= {"interrupts.b": ([500.0] * 3, [900.0] * 3), "interrupts.a": ([500.0] * 3, [1.0] * 3)}
    found = monitor_rows(given)
    assert found.metrics[:2] == ("interrupts.a", "interrupts.b")
    assert found.metrics[2:] == tuple(f"proc-vmstat.n{n:03}" for n in range(35, 60))
    assert found.more == {"proc-vmstat": 35}


def a_sheet(monitors: Mapping[str, Sides]) -> Sheet:
    """A table whose boots give these values, one run each."""
    document = a_table({"vm1": [9.0, 9.0]}, ["base", "head"], id="c5")
    place = {"testbox": "vm1", "unit_job": UNIT_JOB}
    known = {METRIC: ((9.0,) * 3, (9.0,) * 3)} | dict(monitors)
    samples = [
        place | {"metric": metric, "arm": arm, "k": k, "boot": f"x{k}", "run": 0, "value": value}
        for metric, sides in known.items()
        for arm, values in enumerate(sides)
        for k, value in enumerate(values)
    ]
    return sheet_of_table(document, samples)


def test_monitor_rows_stand_below_the_benchmarks_as_lkp_prints_them() -> None:
    monitors: dict[str, Sides] = {
        "proc-vmstat.pgalloc_normal": ((4e5, 4e5, 4.1e5), (2e5, 2e5, 2e5)),
        "interrupts.LOC": ((3000.0,) * 3, (3001.0,) * 3),
        "perf-stat.task-clock": ((1169.0,) * 3, (1300.0,) * 3),
        "numa-vmstat.gone": ((5000.0,) * 3, ()),
    }
    lines = FORMS["lkp"](a_sheet(monitors)).splitlines()
    assert lines[-3:] == [
        "      9.00            +0.0%       9.00        will-it-scale.processes",
        "      1169           +11.2%       1300        perf-stat.task-clock",
        "    403333           -50.4%     200000        proc-vmstat.pgalloc_normal",
    ]


def test_what_is_left_out_of_a_table_is_reported_below_it() -> None:
    monitors: dict[str, Sides] = {
        f"softirqs.n{n:02}": ((1000.0,) * 3, (2000.0 + n,) * 3) for n in range(40)
    }
    text = FORMS["lkp"](a_sheet(monitors))
    assert text.count("softirqs.n") == 25
    assert "\nAlso changed, not shown: 15 of softirqs. `swingbot raw c5 --out DIR` has" in text
