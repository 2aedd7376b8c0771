"""Ingest results from workers: raw files are already in the artifact store; they become builds,
boots, runs and samples.

Each attempt is ingested exactly once: its row is marked in the same transaction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import IO, Any, Final, cast

from swingbot.core.model.artifact import ArtifactError
from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import Attempt, Order
from swingbot.core.plan.seen_hardware import invalid_reason
from swingbot.core.results.metric_names import within_budget
from swingbot.service import limits
from swingbot.service.faults import Faults
from swingbot.service.lab.move_testboxes import outcome_came, withdrew
from swingbot.service.ports import Catalogue, Lab, LabSettings, Tools, Transaction
from swingbot.service.ports.orders import Orders
from swingbot.service.ports.results import ReadingStopped, ResultReader, Unreadable
from swingbot.service.ports.testboxes import Testboxes
from swingbot_jobs.contract.orders import BootOutcome
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program
from swingbot_jobs.limits import SAMPLE_VALUE
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.reading.result import ParsedRun
from swingbot_jobs.testbox.visible_hardware import short_of

# Attempts at a boot that misses its job's demands: a transient fault is gone at the second attempt,
# a permanent one remains at the third.
DEMANDED_ATTEMPTS: Final = 2


def ingest_outcomes(lab: Lab, faults: Faults) -> None:
    """Ingest every ended attempt that was not ingested yet, each in its own transaction."""
    with lab.transaction("find outcomes") as tx:
        waiting = tx.attempts.in_state("ended", ingested=False)
    for attempt in waiting:
        with faults.of(f"attempt {attempt.id}"), lab.transaction("ingest outcome") as tx:
            if tx.attempts.mark_ingested(attempt.id):
                _ingest(lab.tools, lab.catalogue, lab.settings, tx, attempt)


def _ingest(
    tools: Tools, catalogue: Catalogue, settings: LabSettings, tx: Transaction, attempt: Attempt
) -> None:
    order = tx.orders.by_number([attempt.order_id])[attempt.order_id]
    assert attempt.outcome is not None
    outcome = Outcome.read(attempt.outcome)
    tx.attempts.release_lease(attempt.id)
    reason = outcome.reason or "no reason given"
    present = catalogue.testboxes.present
    if outcome.fault or (outcome.status == "infra" and order.state in ("cancelled", "failed")):
        withdrew(present, tx.testboxes, order, reason)  # not a failure of its testbox
    else:
        outcome_came(present, settings, tx, order, outcome.status, outcome.reason)
    if outcome.fault == "order" and order.state == "running":
        tx.orders.set_state(order.id, "failed", reason)
        return
    if outcome.kind != order.kind or outcome.status == "infra":
        stored = False
    elif order.kind == "boot":
        stored = _ingest_boot(tools, catalogue, tx, attempt, order, outcome)
    else:
        kernel = outcome.kernel  # another one than requested counts against the budget
        stored = (
            kernel is not None and kernel.build_key == order.build_key and outcome.image_is_there
        )
        if stored:
            tx.builds.add(attempt.id, outcome)
    if not stored:
        if order.state == "running":
            tx.orders.set_state(order.id, "ready")
        return
    if order.state != "cancelled":
        tx.orders.set_state(order.id, "done")


def _ingest_boot(
    tools: Tools,
    catalogue: Catalogue,
    tx: Transaction,
    attempt: Attempt,
    order: Order,
    outcome: Outcome,
) -> bool:
    """Store a boot with its runs.

    Returns False if it has to be repeated: a demand of the job was not met, a limit of ours ended
    a run or the reader, or its results are damaged.
    """
    build = tx.builds.by_key([order.build_key])[order.build_key]
    assert build.image_sha256 is not None and order.spec is not None
    spec, results = tx.specs.get(order.spec), outcome.sha256_of("results.tar")
    programs, status = catalogue.programs, cast(BootOutcome, outcome.status)
    try:
        runs = (
            read_runs(tools, programs, spec, results, status, outcome.reason, outcome.facts)
            if results
            else []
        )
    except (FileNotFoundError, ArtifactError):
        return False
    except ReadingStopped as error:
        tx.attempts.set_reason(attempt.id, f"the results could not be read: {error}; repeated")
        return False
    if lacking := _short_of(catalogue, tx.testboxes, tx.orders, order, outcome):
        runs = without_hardware(runs, lacking)
    if limited := next((run.reason for run in runs if run.limited), None):
        tx.attempts.set_reason(attempt.id, f"{limited}; repeated")
        return False
    invalid = next((run.reason for run in runs if run.status == "invalid"), None)
    if invalid is not None and attempt.number < min(DEMANDED_ATTEMPTS, order.budget):
        tx.attempts.set_reason(attempt.id, f"{invalid}; repeated")
        return False
    boot = tx.boots.add(attempt.id, order, build.image_sha256, outcome)
    if boot is not None:
        tx.runs.add(
            boot,
            within_budget(runs, tx.runs.metric_names(boot, runs), programs),
            {
                job.name: catalogue.parsers[job.program]
                for job in spec
                if job.program in catalogue.parsers
            },
        )
    return True


def _short_of(
    catalogue: Catalogue, testboxes: Testboxes, orders: Orders, order: Order, outcome: Outcome
) -> str | None:
    """Return why the runs of a boot are invalid if its kernel sees less than its testbox has."""
    testbox = catalogue.testboxes.present.get(order.testbox or "")
    if testbox is None or outcome.status != "up":
        return None
    if (lacking := short_of(testbox, outcome.facts)) is None:
        return None
    known = testboxes.screenings([testbox.name])[testbox.name].hardware or {}
    before = short_of(testbox, known) is None and "nr_cpu" in known
    anchor = order.id in orders.of_anchors()
    return invalid_reason(testbox, lacking, anchor=anchor, before=before)


def without_hardware(runs: Sequence[ParsedRun], why: str) -> list[ParsedRun]:
    """Return the runs of a boot that saw less of its testbox than there is: none has samples."""
    return [replace(run, status="invalid", reason=why, samples={}) for run in runs]


def read_runs(
    tools: Tools,
    programs: Mapping[str, Program],
    spec: Sequence[UnitJob],
    results: str,
    outcome: BootOutcome,
    reason: str | None,
    facts: Mapping[str, Any] | None = None,
) -> list[ParsedRun]:
    """Return the runs of a boot with `outcome`, parsed by the current parsers. All runs of a failed
    boot are failed.

    Raises FileNotFoundError and ArtifactError if the results are missing from the store or damaged
    there, ReadingStopped if a limit ended their reader.
    """
    with tools.artifacts.open(results) as tar:
        runs = _parsed(programs, tools.results, tar, spec, facts)
    if outcome == "up":
        return [_sound(run) for run in runs]
    why = f"the boot was {outcome}: {reason or 'no reason given'}"
    return [replace(run, status="failed", reason=why, samples={}) for run in runs]


def _parsed(
    programs: Mapping[str, Program],
    results: ResultReader | None,
    tar: IO[bytes],
    spec: Sequence[UnitJob],
    facts: Mapping[str, Any] | None,
) -> list[ParsedRun]:
    """Return the runs as parsed; all are failed if the results cannot be read within the limits."""
    if results is None:
        return parse_results(tar, spec, programs, facts)
    try:
        return results.parse(tar, spec, facts)
    except ReadingStopped:
        raise
    except Unreadable as error:
        return [
            ParsedRun(
                unit_job=job.name,
                number=number,
                status="failed",
                reason=f"the results of the boot could not be read: {error}",
                monitor=job.monitor_of(number),
            )
            for job in spec
            for number in job.numbers
        ]


def _sound(run: ParsedRun) -> ParsedRun:
    """Return the run as parsed; failed as a whole if it has an invalid number or metric name,
    because partial results never count.
    """
    for metric, values in run.samples.items():
        if len(metric) > limits.METRIC_CHARACTERS:
            return replace(
                run,
                status="failed",
                reason=f"a metric name must have at most {limits.METRIC_CHARACTERS}"
                " characters, got "
                f"{len(metric)}: {metric[:60]}...",
                samples={},
            )
        if not all(math.isfinite(value) and abs(value) < SAMPLE_VALUE for value in values):
            why = f"{metric} is not a number below {SAMPLE_VALUE:g}"
            return replace(run, status="failed", reason=why, samples={})
    return run
