"""Say what a comparison can show, from the noise records, before any work is spent on it."""

from __future__ import annotations

from swingbot.core.model.noise import NoiseRecord
from swingbot.core.plan.noise import layout_sd
from swingbot.core.stats.resolve import Resolution, plan_comparison
from swingbot.service.judge_comparisons import rule_of
from swingbot.service.ports import Lab, RequestError, Store
from swingbot_jobs.program import Metric
from swingbot_jobs.unit_job import UnitJob


def foresee(lab: Lab, number: int) -> list[str]:
    """A sentence for each unit job and testbox of a comparison, by headline metric where noise records are there. Raises RequestError if there is none."""
    with lab.transaction("foresee comparison") as store:
        comparison = store.comparison(number)
        if comparison is None:
            raise RequestError(f"there is no comparison c{number}; `swingbot list comparisons` shows those there are")
        told = []
        for testbox, spec in comparison.parts:
            for job in store.spec(spec):
                words = [
                    f"{metric.name} of {job.name} on {testbox}: {said}"
                    for metric in lab.programs[job.program].metrics.values()
                    if metric.headline and (said := _words(lab, store, testbox, job, metric, comparison.boots)) is not None
                ]
                told += words or [f"{job.name} on {testbox}: nothing is known yet of its noise there"]
        return told


def _words(lab: Lab, store: Store, testbox: str, job: UnitJob, metric: Metric, boots: int) -> str | None:
    """What `boots` a side resolve; None without a record."""
    record = store.noise_record(testbox, job.name, metric.name)
    box = lab.testboxes[testbox]
    rule = rule_of(box, metric, job)
    spread = _spread(record, box.repeatable)
    if record is None or spread is None:
        return None
    found: Resolution = plan_comparison(
        0.0, spread[0], 1, boots, box.repeatable, df=spread[1], layout=layout_sd(record, rule.layout) if rule.layout else 0.0, alpha=rule.alpha
    )
    return found.words(rule.min_effect_pct)


def _spread(record: NoiseRecord | None, paired: bool) -> tuple[float, float] | None:
    """(sd, df) of one boot mean; on a paired testbox of what pairing does not cancel."""
    if record is None:
        return None
    spread = record.pair if paired else record.boot_mean
    return (spread.sd, spread.df) if spread.known else None
