"""Rules for judging a metric of a unit job on a testbox."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from swingbot.core.model.noise import NoiseRecord
from swingbot.core.plan.noise import layout_of, sd_at_most
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
    testbox: Testbox,
    metric: Metric,
    job: UnitJob,
    record: NoiseRecord | None = None,
    min_effect_pct: float | None = None,
) -> Rule:
    """Return the rule for a metric of a unit job on a testbox.

    `record` is the noise record of the metric there; it has the spread between layouts, and limits
    what two modes of boots can explain. `min_effect_pct` replaces the minimum effect of a
    benchmark's metric.
    """
    rule = rule_on(metric, job, repeatable=testbox.repeatable, record=record)
    if min_effect_pct is not None and metric.klass == "benchmark":
        rule = replace(rule, min_effect_pct=min_effect_pct)
    return rule if testbox.repeatable else replace(rule, sd_at_most=sd_at_most(record))


def rule_on(
    metric: Metric, job: UnitJob, *, repeatable: bool, record: NoiseRecord | None = None
) -> Rule:
    """Return the rule for a metric of a unit job on a testbox that is repeatable or not.

    Without a measured spread between layouts, a share of the program's minimum effect is assumed,
    whatever smaller effect is looked for.
    """
    minimum = metric.min_effect(job.params)
    layout = layout_of(record, LAYOUT_SHARE * minimum / 100, repeatable)
    return rule_for(
        metric.klass,
        metric.better,
        minimum,
        paired=repeatable,
        layout=layout.sd,
        layout_df=layout.df,
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
