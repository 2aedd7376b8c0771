"""Compare each completed anchor with earlier ones.

A testbox that moved is quarantined: its orders wait until an anchor shows its earlier level again,
or a person resumes it.
"""

from __future__ import annotations

import math
from typing import Final

from swingbot.core.model.records import Comparison
from swingbot.core.plan.alerts import MOVED
from swingbot.core.plan.anchors import claims, moved
from swingbot.core.plan.boot_numbers import BootPurpose
from swingbot.core.plan.boot_series import series_for
from swingbot.core.plan.metric_rules import rule_of
from swingbot.service.kernel.images import images_of
from swingbot.service.lab.doctor_testbox import answer_doctor
from swingbot.service.lab.screen_testbox import answer_night
from swingbot.service.ports import Catalogue, Transaction
from swingbot.service.ports.anchors import Anchors
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.noise import Noise
from swingbot.service.ports.specs import Specs
from swingbot.service.result.boots import boots_of

REFERENCE: Final = 5  # number of earlier anchors that a new one is compared with


def check_anchors(catalogue: Catalogue, tx: Transaction) -> None:
    """Compare each completed anchor with the earlier ones; quarantine a testbox that moved, and
    release one that has recovered."""
    running = [
        comparison
        for comparison in tx.comparisons.open()
        if comparison.kind == "anchor" and comparison.status == "running"
    ]
    unfinished = tx.orders.unfinished_comparisons() if running else set()
    for comparison in running:
        if comparison.id not in unfinished and tx.orders.wanted(comparison=comparison.id):
            (image,) = images_of(tx.builds, [tx.variants.get(comparison.base)])
            _check(catalogue, tx, comparison, image)


def _check(
    catalogue: Catalogue, tx: Transaction, comparison: Comparison, image: str | None
) -> None:
    testbox, _ = comparison.parts[0]
    if image is None:
        tx.comparisons.set_status(comparison.id, "failed", "the anchor kernel is not built")
        return
    if comparison.purpose == BootPurpose.DOCTOR:  # its boots differ in their settings
        trust = tx.variants.get(comparison.base).trust
        answer = answer_doctor(catalogue, tx.specs, tx.boots, comparison, image, trust)
        tx.anchors.set_answer(comparison.id, answer)
        tx.comparisons.set_status(comparison.id, "done", None)
        return
    trouble = _trouble(catalogue, tx.specs, tx.boots, tx.noise, tx.anchors, comparison, image)
    mark = (
        f"{MOVED}{trouble}"
        if trouble is not None
        else _claim(catalogue, tx.specs, tx.boots, tx.noise, comparison, image)
    )
    if comparison.purpose == BootPurpose.SCREEN:
        full = tx.anchors.kernel(testbox) or tx.anchors.asked_kernel(testbox)
        tx.anchors.set_answer(
            comparison.id,
            answer_night(catalogue, tx.specs, tx.boots, full, comparison, image),
        )
    state, reason = tx.testboxes.reasons()[testbox]
    tx.comparisons.set_status(comparison.id, "done", mark)
    if trouble is not None and state == "active":
        tx.testboxes.set_state(
            testbox, "quarantined", f"{MOVED}{trouble} (anchor c{comparison.id})"
        )
    elif trouble is None and state == "quarantined" and (reason or "").startswith(MOVED):
        tx.testboxes.set_state(testbox, "active", None)


def _trouble(
    catalogue: Catalogue,
    specs: Specs,
    boots: Boots,
    noise: Noise,
    anchors: Anchors,
    comparison: Comparison,
    image: str,
) -> str | None:
    testbox, spec = comparison.parts[0]
    now, problems = boots_of(
        specs,
        boots,
        image,
        testbox,
        spec,
        series_for(catalogue.testboxes.known(testbox), comparison),
        comparison.numbers,
    )
    earlier = [
        c
        for c in anchors.of_testbox(testbox, "done")
        if c.id < comparison.id
        and c.base == comparison.base
        and c.parts == comparison.parts
        and c.purpose == comparison.purpose
    ]
    sound = [c for c in earlier if not c.reason][-REFERENCE:]
    past = [
        boots_of(
            specs,
            boots,
            image,
            testbox,
            spec,
            series_for(catalogue.testboxes.known(testbox), c),
            c.numbers,
        )[0]
        for c in sound
    ]
    if not now and any(past):
        return (
            "the anchor kernel no longer gives results: "
            f"{problems[0] if problems else 'its boots were lost to infrastructure failures'}"
        )
    for job in specs.get(spec):
        for metric in (m for m in catalogue.programs[job.program].metrics.values() if m.headline):
            key = (job.name, metric.name)
            before = [sum(b.values) / len(b.values) for values in past for b in values.get(key, [])]
            fresh = [sum(b.values) / len(b.values) for b in now.get(key, [])]
            least = math.log1p(
                rule_of(catalogue.testboxes.known(testbox), metric, job).min_effect_pct / 100.0
            )
            trouble = moved(before, fresh, noise.get(testbox, *key), least)
            if trouble is not None:
                return f"{metric.name} of {job.name}: {trouble}"
    return None


def _claim(
    catalogue: Catalogue,
    specs: Specs,
    boots: Boots,
    noise: Noise,
    comparison: Comparison,
    image: str,
) -> str | None:
    """Return what comparing the boots of an anchor with each other claims; None: no change.

    Not on a repeatable testbox, where boots of different numbers are no replicates.
    """
    name, spec = comparison.parts[0]
    testbox = catalogue.testboxes.known(name)
    if testbox.repeatable:
        return None
    series = series_for(testbox, comparison)
    values, _ = boots_of(specs, boots, image, name, spec, series, comparison.numbers)
    for job in specs.get(spec):
        for metric in (m for m in catalogue.programs[job.program].metrics.values() if m.headline):
            key = (job.name, metric.name)
            rule = rule_of(testbox, metric, job, noise.get(name, *key))
            claim = claims(values[key], rule) if key in values else None
            if claim is not None:
                return f"{metric.name} of {job.name}: {claim}"
    return None
