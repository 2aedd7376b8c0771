"""Rules for judging a metric of a unit job on a testbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from swingbot.core.model.noise import NoiseRecord
from swingbot.core.plan.noise import sd_at_most
from swingbot.core.stats.compare import BootRuns, Rule
from swingbot.core.stats.rules import rule_for
from swingbot.core.thresholds import LAYOUT_SHARE, UNKNOWN_METRIC_PCT
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric, Program, find_metric
from swingbot_jobs.testbox.definition import Testbox


def metric_of(programs: Mapping[str, Program], name: str) -> Metric:
    """Return the metric as described by its program.

    A metric that no program has any longer is a counter with 5 % minimum effect.
    """
    return find_metric(programs, name) or Metric(
        name=name,
        unit="",
        better=None,
        klass="counter",
        min_effect_pct=UNKNOWN_METRIC_PCT,
        describe="",
        headline=False,
    )


def rule_of(
    testbox: Testbox, metric: Metric, job: UnitJob, record: NoiseRecord | None = None
) -> Rule:
    """Return the rule for a metric of a unit job on a testbox.

    `record` is the noise record of the metric there; it limits what two modes of boots can explain.
    """
    rule = rule_on(metric, job, repeatable=testbox.repeatable)
    return rule if testbox.repeatable else replace(rule, sd_at_most=sd_at_most(record))


def rule_on(metric: Metric, job: UnitJob, *, repeatable: bool) -> Rule:
    """Return the rule for a metric of a unit job on a testbox that is repeatable or not."""
    minimum = metric.min_effect(job.params)
    return rule_for(
        metric.klass,
        metric.better,
        minimum,
        paired=repeatable,
        layout=LAYOUT_SHARE * minimum / 100,
        unimodal=repeatable,
    )


def makes_row(metric: Metric, boots: Iterable[BootRuns]) -> bool:
    """Return whether the metric makes a row.

    Counters that are 0 on both sides (most of /proc/vmstat) would only hide the others.
    """
    return metric.judged and (
        metric.klass != "counter" or any(value for boot in boots for value in boot.values)
    )


def runs_with(programs: Mapping[str, Program], job: UnitJob, name: str) -> int:
    """Return how many runs of a boot should report the metric: one if its monitor has a run of its
    own.
    """
    owner = programs.get(name.partition(".")[0])
    return 1 if owner is not None and owner.when == "asked" else job.runs
