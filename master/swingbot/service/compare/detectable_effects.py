"""Say what a comparison can show, from the noise records, before any work is spent on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.model.noise import NoiseRecord
from swingbot.core.plan.metric_rules import rule_of
from swingbot.core.plan.noise import layout_sd
from swingbot.core.stats.resolve import KnownNoise, Resolution, plan_family
from swingbot.service.ports import Lab, Transaction
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric

Pairs = Sequence[tuple[int, int]]
ONE_PAIR: Final = ((0, 1),)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableEffect:
    """What `boots` a side show of one metric; percentages are relative changes. Without a noise record all but the names is None."""

    testbox: str
    unit_job: str
    metric: str | None
    boots: int
    resolves_pct: float | None = None  # None too where nothing can be resolved
    wanted_pct: float | None = None  # the metric's minimum effect there
    needs: int | None = None  # boots a side for it; None if out of reach
    words: str

    @property
    def sentence(self) -> str:
        return (
            f"{self.metric} of {self.unit_job} on {self.testbox}: {self.words}"
            if self.metric
            else f"{self.unit_job} on {self.testbox}: {self.words}"
        )


def foresights(
    lab: Lab, tx: Transaction, parts: Sequence[tuple[str, str]], boots: int, pairs: Pairs = ONE_PAIR
) -> list[DetectableEffect]:
    """What `boots` of each kernel show in a table of `pairs` (reference, row), by testbox and headline metric."""
    found: list[DetectableEffect] = []
    for testbox, spec in parts:
        for job in tx.specs.get(spec):
            metrics = lab.programs[job.program].metrics.values()
            known = [
                seen
                for metric in metrics
                if metric.headline
                and (seen := _of_metric(lab, tx, testbox, job, metric, boots, pairs)) is not None
            ]
            unknown = DetectableEffect(
                testbox=testbox,
                unit_job=job.name,
                metric=None,
                boots=boots,
                words="nothing is known yet of its noise there",
            )
            found += known or [unknown]
    return found


def _of_metric(
    lab: Lab, tx: Transaction, testbox: str, job: UnitJob, metric: Metric, boots: int, pairs: Pairs
) -> DetectableEffect | None:
    """None without a record."""
    record = tx.noise.get(testbox, job.name, metric.name)
    box = lab.testboxes.known(testbox)
    rule = rule_of(box, metric, job)
    spread = _spread(record, box.repeatable)
    if record is None or spread is None:
        return None
    noise = KnownNoise(
        run=0.0,
        boot=spread[0],
        df=spread[1],
        layout=layout_sd(record, rule.layout) if rule.layout else 0.0,
    )
    found: Resolution = plan_family(noise, 1, boots, box.repeatable, pairs)
    return DetectableEffect(
        testbox=testbox,
        unit_job=job.name,
        metric=metric.name,
        boots=boots,
        resolves_pct=None if math.isinf(found.resolves_pct) else found.resolves_pct,
        wanted_pct=rule.min_effect_pct,
        needs=found.boots_for(rule.min_effect_pct),
        words=found.words(rule.min_effect_pct),
    )


def _spread(record: NoiseRecord | None, paired: bool) -> tuple[float, float] | None:
    """(sd, df) of one boot mean; on a paired testbox of what pairing does not cancel."""
    if record is None:
        return None
    spread = record.pair if paired else record.boot_mean
    return (spread.sd, spread.df) if spread.known else None
