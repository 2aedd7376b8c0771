"""A night that switches the items of a testbox's tuning list off and on, and says what each is
worth there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swingbot.core.model.records import BootRecord, Comparison
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.boot_numbers import BootPurpose
from swingbot.core.plan.long_screening import NightTooShort, plan_screening
from swingbot.core.plan.metric_rules import rule_on
from swingbot.core.plan.tuning_worth import (
    ALPHA,
    Estimate,
    ItemWorth,
    by_reason,
    judge_item,
    mean_of,
    night_size,
    switched,
)
from swingbot.core.text.numbers import two_digits
from swingbot.service.lab.screen_testbox import NightRequest, check_in_service, night_kernel
from swingbot.service.ports import Catalogue, RequestError, Transaction
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.specs import Specs
from swingbot_jobs.contract.trust import Trust
from swingbot_jobs.contract.unit_job import UnitJob


def plan_doctor(
    testboxes: KnownTestboxes, tx: Transaction, testbox: str, hours: float
) -> NightRequest:
    """Return what a doctor's night of `hours` would boot, with the items that it switches.

    Raises RequestError as `plan_night` does, and if no item of a list can be switched.
    """
    check_in_service(testboxes, tx.testboxes, tx.anchors, testbox, BootPurpose.DOCTOR)
    described = testboxes.present[testbox]
    if described.tuning is None:
        raise RequestError(
            f"testbox {testbox} has no tuning list: name one in its file, such as `tuning: quiet`"
        )
    kernel = night_kernel(tx.anchors, testbox)
    variant = tx.variants.get(kernel.variant)
    full, facts = tx.specs.get(kernel.spec), tx.boots.latest_facts(testbox)
    found = switched(described, described.tuning, full, facts, variant.trust)
    if not found.jobs:
        reasons = "; ".join(by_reason(found.skipped))
        raise RequestError(
            f"no item of the tuning list {described.tuning.name} can be switched on testbox"
            f" {testbox}: {reasons or 'the list is empty'}"
        )
    try:
        plan = plan_screening(
            described,
            full,
            hours,
            tx.boots.seconds(testbox, kernel.spec),
            night_size(len(found.jobs)),
        )
    except NightTooShort as error:
        raise RequestError(str(error)) from None
    items = switched(described, described.tuning, plan.unit_jobs, facts, variant.trust)
    return NightRequest(
        testbox=testbox,
        kernel=kernel,
        commit=variant.commit,
        build_key=variant.build_key,
        plan=plan,
        purpose=BootPurpose.DOCTOR,
        items=items.jobs,
        skipped=items.skipped,
    )


def answer_doctor(
    catalogue: Catalogue,
    specs: Specs,
    boots: Boots,
    comparison: Comparison,
    image: str,
    trust: Trust,
) -> dict[str, Any]:
    """Return what each item is worth by the boots of a doctor's night, as plain data.

    `trust` is that of the kernel.
    """
    name, spec = comparison.parts[0]
    testbox, jobs = catalogue.testboxes.known(name), specs.get(spec)
    arms = [
        [
            _MeasuredBoot(boot=boot, values=boots.values(boot.id))
            for boot in boots.find(
                image, name, arm.spec(spec), f"c{comparison.id}", comparison.numbers
            )
        ]
        for arm in comparison.arms
    ]
    usual, off = (
        arms[0],
        dict(zip((arm.name for arm in comparison.arms[1:]), arms[1:], strict=True)),
    )
    facts = next((one.boot.facts for one in reversed(usual) if one.up), {})
    skipped: Mapping[str, str] = {}
    if testbox.tuning is not None:
        skipped = switched(testbox, testbox.tuning, jobs, facts, trust).skipped
    return {
        "boots": sum(one.up for own in arms for one in own),
        "items": [
            {"item": item, **_worth(catalogue, boots, jobs, usual, own, len(off))}
            for item, own in off.items()
        ],
        "skipped": by_reason({item: why for item, why in skipped.items() if item not in off}),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasuredBoot:
    """A boot and the values of its runs, by (unit job, metric)."""

    boot: BootRecord
    values: Mapping[tuple[str, str], Sequence[float]]

    @property
    def up(self) -> bool:
        return self.boot.outcome == "up"


def _worth(
    catalogue: Catalogue,
    boots: Boots,
    jobs: Sequence[UnitJob],
    usual: Sequence[_MeasuredBoot],
    off: Sequence[_MeasuredBoot],
    items: int,
) -> dict[str, Any]:
    """Return what an item is worth: boots of the whole list against boots with it off."""
    judged = [
        judge_item(
            job,
            metric.name,
            (_measured(usual, job, metric.name), _measured(off, job, metric.name)),
            rule_on(metric, job, repeatable=False),
            items,
        )
        for job in jobs
        for metric in catalogue.programs[job.program].metrics.values()
        if metric.headline
    ]
    metrics = [one for one in judged if one.boots]
    seconds = _longer(usual, off, items)
    return {
        "boots": sum(one.up for one in off),
        "boot_seconds": asdict(seconds),
        "metrics": [asdict(one) for one in metrics],
        "problem": None if metrics else _problem(boots, off, jobs),
        "words": _words(metrics, seconds),
    }


def _measured(
    boots: Sequence[_MeasuredBoot], job: UnitJob, metric: str
) -> dict[int, Sequence[float]]:
    """Return the finite values of a metric by the number of the boot."""
    values = {one.boot.k: one.values.get((job.name, metric), ()) for one in boots if one.up}
    return {k: own for k, own in values.items() if own and all(map(math.isfinite, own))}


def _longer(usual: Sequence[_MeasuredBoot], off: Sequence[_MeasuredBoot], items: int) -> Estimate:
    """Return the seconds that a boot takes longer with the item off."""
    before = {one.boot.k: one.boot.seconds for one in usual if one.up}
    return mean_of(
        [one.boot.seconds - before[one.boot.k] for one in off if one.up and one.boot.k in before],
        ALPHA / (2 * items),
    )


def _problem(boots: Boots, off: Sequence[_MeasuredBoot], jobs: Sequence[UnitJob]) -> str:
    """Return why boots with an item off gave no numbers."""
    for one in off:
        if not one.up:
            return one.boot.trouble
        for job in jobs:
            if why := boots.problems(one.boot.id, job.name):
                return why[0]
    return "none of its boots gave numbers beside one with the whole list"


def _words(metrics: Sequence[ItemWorth], seconds: Estimate) -> str:
    """Return what an item is worth in one line."""
    parts = [f"{one.unit_job}: {one.words}" for one in metrics]
    if seconds.value is not None and seconds.low is not None and seconds.high is not None:
        low, high = (two_digits(v, "+") for v in (seconds.low, seconds.high))
        parts.append(f"a boot takes {two_digits(seconds.value, '+')} s ({low} to {high})")
    return "; ".join(parts)
