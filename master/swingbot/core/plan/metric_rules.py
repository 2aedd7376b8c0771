"""Rules for judging a metric of a unit job on a testbox."""

from __future__ import annotations

from collections.abc import Mapping

from swingbot.core.stats.compare import Rule
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


def rule_of(testbox: Testbox, metric: Metric, job: UnitJob) -> Rule:
    """Return the rule for a metric of a unit job on a testbox."""
    minimum = metric.min_effect(job.params)
    return rule_for(
        metric.klass,
        metric.better,
        minimum,
        paired=testbox.repeatable,
        layout=LAYOUT_SHARE * minimum / 100,
        unimodal=testbox.repeatable,
    )
