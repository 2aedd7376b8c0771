"""Count calls of the functions that a culprit changed: choose kernels and run, and evaluate the
counts (docs/executed.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from swingbot.core.model.records import Comparison, Variant
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.boot_series import series_for
from swingbot.core.proof import executed
from swingbot.core.proof.gates import GateResult
from swingbot.service.kernel.compare import files_of
from swingbot.service.kernel.variants import with_fragment
from swingbot.service.ports import Transaction
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.ports.kernels import KernelRecords, NoRecord, RecordFiles
from swingbot.service.ports.trees import Trees
from swingbot.service.ports.variants import Variants
from swingbot_jobs.contract.kconfig import Kconfigs, NoKconfig
from swingbot_jobs.contract.unit_job import UnitJob

TRACED: Final = "trace"  # configuration fragment that builds kernels with function hooks
BOOTS: Final = 1  # per kernel: one boot shows whether a function is called at all


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOrder:
    """A traced boot: the kernels of parent and commit with hooks, and the unit job with a run that
    counts calls.
    """

    base: Variant
    head: Variant
    job: UnitJob


def trace_order(
    kernels: KernelRecords,
    kconfigs: Kconfigs,
    trees: Trees,
    variants: Variants,
    builds: KernelBuilds,
    pair: tuple[Variant, Variant],
    job: UnitJob,
) -> TraceOrder | GateResult:
    """Return what to measure to learn whether `job` calls the code that differs between the `pair`
    of parent and culprit, or the reason why that is impossible.
    """
    stored = builds.stored([variant.build_key for variant in pair])
    sides = [stored.get(variant.build_key) for variant in pair]
    if sides[0] is None or sides[1] is None:
        return GateResult(status="not run", reason="commit and parent are not both built")
    try:
        names = kernels.watched(files_of(sides[0]), files_of(sides[1]))
        if isinstance(names, GateResult):
            return names
        traced = [with_fragment(kconfigs, trees, variants, variant, TRACED) for variant in pair]
    except (NoRecord, NoKconfig) as error:
        return GateResult(status="not run", reason=str(error))
    watched = replace(job, runs=1, warmup=0, monitors=(executed.MONITOR,), functions=names)
    return TraceOrder(base=traced[0], head=traced[1], job=watched)


def traced(
    kernels: KernelRecords, testboxes: KnownTestboxes, tx: Transaction, comparison: Comparison
) -> GateResult:
    """Return the gate result from the completed boots of a `TraceOrder`.

    `comparison` has its kernels as base and head, and its only job.
    """
    (testbox, spec), variants = (
        comparison.parts[0],
        [tx.variants.get(number) for number in (comparison.base, comparison.head)],
    )
    (job,) = tx.specs.get(spec)
    builds = tx.builds.stored([variant.build_key for variant in variants])
    files: list[RecordFiles] = []
    sides: list[Mapping[str, float]] = []
    try:
        for variant in variants:
            build = builds.get(variant.build_key)
            if build is None or build["image_sha256"] is None:
                return GateResult(
                    status="not run",
                    reason=f"the kernel of {variant.commit[:12]} with function hooks was not built",
                )
            calls = _calls(testboxes, tx.boots, comparison, testbox, spec, job, build)
            if isinstance(calls, str):
                return GateResult(status="not run", reason=calls)
            files.append(files_of(build))
            sides.append(calls)
        where = f"one run of {job.program}"
        return kernels.executed(files[0], files[1], sides, job.functions, where)
    except NoRecord as error:
        return GateResult(status="not run", reason=str(error))


def _calls(
    testboxes: KnownTestboxes,
    boots: Boots,
    comparison: Comparison,
    testbox: str,
    spec: str,
    job: UnitJob,
    build: Mapping[str, Any],
) -> dict[str, float] | str:
    """Return the calls by function from the first boot that counted them; or the reason why no boot
    did.
    """
    trouble = "no boot completed"
    for boot in boots.find(
        build["image_sha256"],
        testbox,
        spec,
        series_for(testboxes.known(testbox), comparison),
        comparison.numbers,
    ):
        values = boots.values(boot.id) if boot.outcome == "up" else {}
        if (job.name, f"{executed.MONITOR}.counted") in values:
            prefix = f"{executed.MONITOR}.calls."
            return {
                metric.removeprefix(prefix): counts[0]
                for (name, metric), counts in values.items()
                if name == job.name and metric.startswith(prefix)
            }
        problems = (
            boots.problems(boot.id, job.name)
            if boot.outcome == "up"
            else [f"the boot was {boot.trouble}"]
        )
        trouble = problems[-1] if problems else trouble
    return f"calls were not counted: {trouble}"
