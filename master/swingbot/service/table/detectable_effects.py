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
from swingbot.core.text.numbers import duration
from swingbot.core.thresholds import VERDICT_ALPHA
from swingbot.service.ports import Catalogue
from swingbot.service.ports.noise import Noise
from swingbot.service.ports.specs import Specs
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Metric, Program

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
    needs_boots: int | None = None  # of all kernels together
    needs_seconds: float | None = None  # testbox time of these
    layout_assumed: bool = False  # the spread between layouts was not measured there
    words: str

    @property
    def sentence(self) -> str:
        of = f"{self.metric} of {self.unit_job}" if self.metric else self.unit_job
        said = f"{of} on {self.testbox}: {self.words}"
        if self.needs is not None and self.needs > self.boots and self.needs_seconds is not None:
            said += f": {self.needs_boots} boots in all, about {duration(self.needs_seconds)}"
        return f"{said}; the spread between layouts is assumed" if self.layout_assumed else said


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTable:
    """Boots of each kernel, the (reference, row) pairs, and the share of the error rate."""

    boots: int
    pairs: Pairs = ONE_PAIR
    share: float = 1.0
    min_effect_pct: float | None = None  # smallest change of interest; None: that of the metric


def detectable_effects(
    catalogue: Catalogue,
    specs: Specs,
    noise: Noise,
    parts: Sequence[tuple[str, str]],
    table: PlannedTable,
) -> list[DetectableEffect]:
    """Return the effects that a look at a table can detect, by testbox and headline metric."""
    effects: list[DetectableEffect] = []
    for testbox, spec in parts:
        for job in specs.get(spec):
            program = catalogue.programs[job.program]
            known = effects_of_job(program, catalogue.testboxes, noise, testbox, job, table)
            unknown = DetectableEffect(
                testbox=testbox,
                unit_job=job.name,
                metric=None,
                boots=table.boots,
                words="its noise on this testbox is unknown",
            )
            effects += known or [unknown]
    return effects


def effects_of_job(
    program: Program,
    testboxes: KnownTestboxes,
    noise: Noise,
    testbox: str,
    job: UnitJob,
    table: PlannedTable,
) -> list[DetectableEffect]:
    """Return the effects on the headline metrics of a unit job that have a noise record."""
    seen = (
        _of_metric(testboxes, noise, testbox, job, metric, table)
        for metric in program.metrics.values()
        if metric.headline
    )
    return [one for one in seen if one is not None]


def _of_metric(
    testboxes: KnownTestboxes,
    noise: Noise,
    testbox: str,
    job: UnitJob,
    metric: Metric,
    table: PlannedTable,
) -> DetectableEffect | None:
    """Return the detectable effect of one metric; None without a noise record."""
    record = noise.get(testbox, job.name, metric.name)
    definition = testboxes.known(testbox)
    rule = rule_of(definition, metric, job, record, table.min_effect_pct)
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
        layout_assumed=math.isinf(rule.layout_df),
        words=resolution.words(rule.min_effect_pct),
    )


def _spread(record: NoiseRecord | None, paired: bool) -> tuple[float, float] | None:
    """Return (sd, df) of one boot mean; on a paired testbox, of the noise that pairing does not
    cancel.
    """
    if record is None:
        return None
    spread = record.pair if paired else record.boot_mean
    return (spread.sd, spread.df) if spread.known else None
