"""The long form of a testbox's screening: a night of anchor boots whose answer says what the
testbox resolves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from swingbot.core.model.records import Arm, Comparison, NewComparison, base_and_head
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.boot_numbers import NIGHTS, BootPurpose
from swingbot.core.plan.long_screening import (
    NightTooShort,
    ScreenedBoot,
    ScreeningPlan,
    judge_screening,
    night_words,
    plan_screening,
    suspicious,
)
from swingbot.core.plan.metric_rules import rule_on
from swingbot.core.text.nearest import instead_of
from swingbot.service.ports import Catalogue, RequestError, Transaction
from swingbot.service.ports.anchors import AnchorKernel, Anchors
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.specs import Specs
from swingbot.service.ports.testboxes import Testboxes
from swingbot.service.ports.transaction import OpenTransaction
from swingbot_jobs.contract.deadline import run_seconds, runtime_seconds
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.testbox.boot_time import boot_seconds
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.ssh import SshDriver

AS_IT_IS: Final = "as-it-is"  # the row of a doctor's night with the whole tuning list


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRequest:
    """What a night would boot on a testbox; of the doctor's, unit jobs by item that is off, and
    why other items are not switched.
    """

    testbox: str
    kernel: AnchorKernel
    commit: str
    build_key: str
    plan: ScreeningPlan
    purpose: BootPurpose = BootPurpose.SCREEN
    items: Mapping[str, tuple[UnitJob, ...]] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)


def plan_night(
    testboxes: KnownTestboxes, tx: Transaction, testbox: str, hours: float
) -> NightRequest:
    """Return what a night of `hours` would boot: the kernel and the jobs of the testbox's anchor.

    Raises RequestError: no such testbox, no known kernel, out of service, or too few hours.
    """
    check_in_service(testboxes, tx.testboxes, tx.anchors, testbox, BootPurpose.SCREEN)
    kernel = night_kernel(tx.anchors, testbox)
    variant = tx.variants.get(kernel.variant)
    try:
        plan = plan_screening(
            testboxes.present[testbox],
            tx.specs.get(kernel.spec),
            hours,
            tx.boots.seconds(testbox, kernel.spec),
        )
    except NightTooShort as error:
        raise RequestError(str(error)) from None
    return NightRequest(
        testbox=testbox,
        kernel=kernel,
        commit=variant.commit,
        build_key=variant.build_key,
        plan=plan,
    )


def check_in_service(
    testboxes: KnownTestboxes,
    states: Testboxes,
    anchors: Anchors,
    testbox: str,
    purpose: BootPurpose,
) -> None:
    """Raise RequestError if a night for this purpose cannot begin on a testbox."""
    state, reason = states.reasons().get(testbox, ("gone", None))
    if testbox not in testboxes.present or state == "gone":
        raise RequestError(
            f"testbox {testbox!r} does not exist; {instead_of(testbox, testboxes.present)}"
        )
    if testboxes.present[testbox].repeatable:
        raise RequestError(
            f"testbox {testbox} counts instructions: boots repeat their numbers there, and there is"
            " no noise to measure"
        )
    if state != "active":
        raise RequestError(
            f"testbox {testbox} is {state} ({reason or 'no reason given'}):"
            f" `swingbot testbox resume {testbox}` first"
        )
    for other in NIGHTS:
        if other != purpose and (running := open_night(anchors, testbox, other)) is not None:
            raise RequestError(
                f"night c{running.id} is under way on testbox {testbox}: wait for it"
                f" (`swingbot testbox {other} {testbox}`), or `swingbot cancel c{running.id}`"
            )


def night_kernel(anchors: Anchors, testbox: str) -> AnchorKernel:
    """Return the kernel that a night boots on a testbox. Raises RequestError."""
    kernel = anchors.kernel(testbox) or anchors.asked_kernel(testbox)
    if kernel is None:
        raise RequestError(
            f"no kernel is known for testbox {testbox}: watch a tree there first (`swingbot tree"
            f" add ... --testbox {testbox}`); the night boots its base with its jobs"
        )
    return kernel


def open_night(anchors: Anchors, testbox: str, purpose: BootPurpose) -> Comparison | None:
    """Return the night for a purpose that is under way on a testbox; None if there is none."""
    nights = [
        anchor
        for anchor in anchors.of_testbox(testbox, "waiting", "running")
        if anchor.purpose == purpose
    ]
    return nights[-1] if nights else None


def begin_night(
    transaction: OpenTransaction, testboxes: KnownTestboxes, night: NightRequest
) -> int:
    """Order a night and return its comparison; one that is under way stays, and is returned."""
    with transaction("screen testbox") as tx:
        tx.testboxes.lock(night.testbox)  # of two requests at once, the second sees the first
        if (running := open_night(tx.anchors, night.testbox, night.purpose)) is not None:
            return running.id
        variant = night.kernel.variant
        spec = tx.specs.add(night.plan.unit_jobs)
        arms = [
            Arm(name=item, variant=variant, specs={spec: tx.specs.add(jobs)})
            for item, jobs in night.items.items()
        ]
        return tx.comparisons.add(
            NewComparison(
                kind="anchor",
                tree=night.kernel.tree,
                arms=(Arm(name=AS_IT_IS, variant=variant), *arms)
                if arms
                else base_and_head(variant, variant),
                boots=night.plan.boots,
                parts=((night.testbox, spec),),
                purpose=night.purpose,
            )
        )


def answer_night(
    catalogue: Catalogue,
    specs: Specs,
    boots: Boots,
    full: AnchorKernel | None,
    comparison: Comparison,
    image: str,
) -> dict[str, Any]:
    """Return what the boots of a night say about the testbox, by headline metric, as plain data.

    `full` is the anchor that the testbox boots otherwise, whose jobs have their full runtime.
    """
    name, spec = comparison.parts[0]
    testbox, jobs = catalogue.testboxes.known(name), specs.get(spec)
    whole = {job.name: job for job in specs.get(full.spec)} if full is not None else {}
    known = [
        (boot.facts, boots.values(boot.id))
        for boot in boots.find(image, name, spec, f"c{comparison.id}", comparison.numbers)
        if boot.outcome == "up"
    ]
    seconds = _full_seconds(testbox, jobs, whole, boots.seconds(name, spec))
    metrics = []
    for job in jobs:
        for metric in (m for m in catalogue.programs[job.program].metrics.values() if m.headline):
            judged = judge_screening(
                job,
                metric.name,
                [
                    ScreenedBoot(
                        values=tuple(values.get((job.name, metric.name), ())),
                        entered=str(facts.get("entered_by", "")),
                    )
                    for facts, values in known
                ],
                rule_on(metric, job, repeatable=False),
                _share(job, whole.get(job.name, job)),
            )
            if judged.boots:
                words = night_words(judged, seconds, ways=two_ways(testbox))
                metrics.append({**asdict(judged), "words": words})
    twins = [
        other.name
        for other in catalogue.testboxes.present.values()
        if other.name != name
        and not other.virtual
        and other.tbox_group == testbox.tbox_group
        and other.model == testbox.model
    ]
    return {
        "boots": len(known),
        "metrics": metrics,
        "suspicious": suspicious(known[-1][0] if known else {}, boots.latest_facts_of(twins)),
    }


def two_ways(testbox: Testbox) -> bool:
    """Whether boots of a night take turns between kexec and reboot."""
    return isinstance(testbox.driver, SshDriver) and testbox.driver.takes_turns


def _share(job: UnitJob, full: UnitJob) -> float:
    """Return what remains of the variance within a boot if its runs are as long as those of
    `full` and noise within a boot averages out.
    """
    seconds, full_seconds = (runtime_seconds(one) or 1.0 for one in (job, full))
    return min(1.0, job.runs * seconds / (full.runs * full_seconds))


def _full_seconds(
    testbox: Testbox, jobs: list[UnitJob], whole: Mapping[str, UnitJob], measured: float | None
) -> float:
    """Return the seconds of a boot with the full jobs, from the measured ones of the night."""
    full = [whole.get(job.name, job) for job in jobs]
    longer = sum(
        run_seconds(job, job.monitor_of(number)) for job in full for number in job.numbers
    ) - sum(run_seconds(job) for job in jobs for _ in job.numbers)
    return max(0.0, longer) + (measured if measured is not None else boot_seconds(testbox, jobs))
