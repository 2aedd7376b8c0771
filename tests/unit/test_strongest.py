"""Which counters of a table are judged, however many a guest makes up."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from swingbot.core.limits import JUDGED_COUNTERS
from swingbot.core.plan.metric_rules import rule_on
from swingbot.core.table.rows import MeasuredArm, MeasuredBoot, MetricKey, TestboxRule
from swingbot.core.table.strongest import strongest
from swingbot_jobs.contract.unit_job import UnitJob
from tests.programs import PROGRAMS

JOB = UnitJob(name="j", program="page-fault", params={}, runs=1)
BENCHMARK: MetricKey = ("j", "page-fault.per_process_ops")
BOOTS = 4


RULE = TestboxRule(
    testbox="vm",
    label="",
    paired=True,
    jobs={"j": JOB},
    programs=PROGRAMS,
    of_metric=lambda job, metric: rule_on(metric, job, repeatable=True),
)


def arm(name: str, values: Mapping[str, list[float]]) -> MeasuredArm:
    """An arm whose boot k measured the k-th value of each metric."""
    boots = [
        MeasuredBoot(
            k=k, facts={}, values={("j", m): (v[k],) for m, v in values.items() if k < len(v)}
        )
        for k in range(BOOTS)
    ]
    return MeasuredArm(name=name, image=name, boots=boots)


def kept(base: Mapping[str, list[float]], head: Mapping[str, list[float]]) -> list[str]:
    arms = [arm("base", base), arm("head", head)]
    keys = [("j", metric) for metric in dict.fromkeys([*base, *head])]
    return [metric for _, metric in strongest(arms, [(0, 1)], keys, RULE)]


def noise(count: int, level: float) -> dict[str, list[float]]:
    """Counters that differ from boot to boot and not from kernel to kernel."""
    return {
        f"perf-stat.n{n}": [level * (1 + 0.1 * ((n * 7 + k * 3) % 5)) for k in range(BOOTS)]
        for n in range(count)
    }


EXPLAINS = {
    "a counter of a kernel that is twice as high": ([10.0, 11, 9, 10], [20.0, 22, 21, 19]),
    "one that was 0": ([0.0] * 4, [3.0, 3, 3, 3]),
    "one that repeats exactly": ([1000.0] * 4, [1100.0] * 4),
    "one that changes with the boot alike on both": ([1.0, 2, 3, 4], [1.5, 2.5, 3.5, 4.5]),
}


@pytest.mark.parametrize("values", EXPLAINS.values(), ids=EXPLAINS)
def test_what_explains_a_change_is_kept_among_thousands(
    values: tuple[list[float], list[float]],
) -> None:
    weak = noise(5000, 100.0)
    only_base = {f"meminfo.b{n}": [5.0] for n in range(3000)}
    only_head = {f"meminfo.h{n}": [9e99] for n in range(3000)}
    base = {**weak, **only_base, "proc-vmstat.pgfault": values[0], BENCHMARK[1]: [1.0] * 4}
    head = {**weak, **only_head, "proc-vmstat.pgfault": values[1], BENCHMARK[1]: [1.0] * 4}
    found = kept(base, head)
    assert {"proc-vmstat.pgfault", BENCHMARK[1]} <= set(found)
    assert len(found) == JUDGED_COUNTERS + 1
    assert found == [metric for metric in dict.fromkeys([*base, *head]) if metric in set(found)]


def test_a_change_below_the_minimum_effect_outranks_no_real_one() -> None:
    tiny = {f"perf-stat.t{n}": [1e6] * 4 for n in range(2000)}
    base = {**tiny, "proc-vmstat.pgfault": [100.0, 101, 99, 100]}
    head = {**{name: [1e6 + 1] * 4 for name in tiny}, "proc-vmstat.pgfault": [115.0, 116, 114, 115]}
    assert "proc-vmstat.pgfault" in kept(base, head)


def test_a_usual_number_of_counters_stays_as_it_is() -> None:
    values = noise(JUDGED_COUNTERS, 1.0)
    assert kept(values, values) == list(values)


def test_one_boot_each_is_judged_by_how_much_changed() -> None:
    weak = {name: values[:1] for name, values in noise(600, 100.0).items()}
    found = kept({**weak, "proc-vmstat.a": [10.0]}, {**weak, "proc-vmstat.a": [20.0]})
    assert "proc-vmstat.a" in found
