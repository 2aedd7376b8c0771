"""Predict from the noise records which effects a comparison can detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from swingbot.core.model.noise import NoiseRecord
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.metric_rules import rule_of
from swingbot.core.stats.resolve import KnownNoise, Resolution, plan_family
from swingbot.core.thresholds import VERDICT_ALPHA
from swingbot.service.ports import Catalogue
from swingbot.service.ports.noise import Noise
from swingbot.service.ports.specs import Specs
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric

Pairs = Sequence[tuple[int, int]]
ONE_PAIR: Final = ((0, 1),)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectableEffect:
    """Effect of one metric that `boots` per side can detect; percentages are relative changes.

    Without a noise record, all fields but the names are None.
    """

    testbox: str
    unit_job: str
    metric: str | None
    boots: int
    resolves_pct: float | None = None  # also None if no effect can be resolved
    wanted_pct: float | None = None  # the metric's minimum effect on this testbox
    needs: int | None = None  # boots per side for it; None if unattainable
    words: str

    @property
    def sentence(self) -> str:
        return (
            f"{self.metric} of {self.unit_job} on {self.testbox}: {self.words}"
            if self.metric
            else f"{self.unit_job} on {self.testbox}: {self.words}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Boots of each kernel, the (reference, row) pairs, and the share of the error rate."""

    boots: int
    pairs: Pairs
    share: float


def detectable_effects(
    catalogue: Catalogue,
    specs: Specs,
    noise: Noise,
    parts: Sequence[tuple[str, str]],
    boots: int,
    pairs: Pairs = ONE_PAIR,
    *,
    share: float = 1.0,
) -> list[DetectableEffect]:
    """Return the effects that `boots` of each kernel can detect in a table of `pairs` (reference,
    row), by testbox and headline metric, if a look spends `share` of the error rate.
    """
    effects: list[DetectableEffect] = []
    table = _Table(boots=boots, pairs=pairs, share=share)
    for testbox, spec in parts:
        for job in specs.get(spec):
            metrics = catalogue.programs[job.program].metrics.values()
            known = [
                seen
                for metric in metrics
                if metric.headline
                and (seen := _of_metric(catalogue.testboxes, noise, testbox, job, metric, table))
                is not None
            ]
            unknown = DetectableEffect(
                testbox=testbox,
                unit_job=job.name,
                metric=None,
                boots=boots,
                words="its noise on this testbox is unknown",
            )
            effects += known or [unknown]
    return effects


def _of_metric(
    testboxes: KnownTestboxes,
    noise: Noise,
    testbox: str,
    job: UnitJob,
    metric: Metric,
    table: _Table,
) -> DetectableEffect | None:
    """Return the detectable effect of one metric; None without a noise record."""
    record = noise.get(testbox, job.name, metric.name)
    definition = testboxes.known(testbox)
    rule = rule_of(definition, metric, job, record)
    spread = _spread(record, definition.repeatable)
    if record is None or spread is None:
        return None
    spreads = KnownNoise(
        run=0.0,
        boot=spread[0],
        df=spread[1],
        layout=rule.layout,
        layout_df=rule.layout_df,
        sd_at_most=rule.sd_at_most,
    )
    resolution: Resolution = plan_family(
        spreads,
        1,
        table.boots,
        definition.repeatable,
        table.pairs,
        alpha=table.share * VERDICT_ALPHA,
    )
    return DetectableEffect(
        testbox=testbox,
        unit_job=job.name,
        metric=metric.name,
        boots=table.boots,
        resolves_pct=None if math.isinf(resolution.resolves_pct) else resolution.resolves_pct,
        wanted_pct=rule.min_effect_pct,
        needs=resolution.boots_for(rule.min_effect_pct),
        words=resolution.words(rule.min_effect_pct)
        + ("" if math.isfinite(rule.layout_df) else "; its layout spread is assumed"),
    )


def _spread(record: NoiseRecord | None, paired: bool) -> tuple[float, float] | None:
    """Return (sd, df) of one boot mean; on a paired testbox, of the noise that pairing does not
    cancel.
    """
    if record is None:
        return None
    spread = record.pair if paired else record.boot_mean
    return (spread.sd, spread.df) if spread.known else None
