"""Prove a testbox file and a kernel configuration by one boot: compare what the kernel sees
with the file and, where the file does not state it, with the idle system.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from swingbot_jobs import codec
from swingbot_jobs.contract.fact_sheet import not_as_demanded
from swingbot_jobs.contract.facts import Value
from swingbot_jobs.contract.orders import check_order
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.expand import expand
from swingbot_jobs.language.program import Program, load_programs
from swingbot_jobs.reading.parse import parse_results, read_results
from swingbot_jobs.testbox.boot_time import boot_limit, boot_seconds
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_jobs.testbox.visible_hardware import VisibleHardware, visible
from swingbot_worker import testbox as boots
from swingbot_worker.order import BootOrder
from swingbot_worker.outcome import Outcome
from swingbot_worker.site import Site
from swingbot_worker.testbox.check import rounded

# A short run on all CPUs at once: the order has to measure something.
_JOB: Final = "page-fault: {mode: process, nr_task: 100%, cycles: 1, size: 4M}\nruns: 1\n"
# Facts that a file states only by a demand; else they are those of the idle system.
_OF_IDLE_SYSTEM: Final = (
    "cpu_model",
    "nr_socket",
    "threads_per_core",
    "microcode",
    "clocksource",
    "freq_driver",
)
# What to look at if a kernel sees less of the machine than its idle system, by fact.
_OPTIONS: Final = {
    "nr_cpu": "CONFIG_SMP, CONFIG_NR_CPUS and CONFIG_X86_X2APIC",
    "nr_node": "CONFIG_NUMA and CONFIG_ACPI_NUMA",
    "memory_kb": "mem=, memmap= and crashkernel= of cmdline",
    "nr_socket": "CONFIG_SMP and CONFIG_NR_CPUS",
    "threads_per_core": "nosmt of cmdline, and CONFIG_SMP",
    "microcode": "CONFIG_MICROCODE, and whether the firmware or the idle system loads it",
    "clocksource": "clocksource= and tsc= of cmdline, and the kernel's messages about tsc",
    "freq_driver": "CONFIG_X86_INTEL_PSTATE, CONFIG_X86_AMD_PSTATE and CONFIG_X86_ACPI_CPUFREQ",
}
# Keys of a testbox file that have other names than the facts that they state.
_KEYS: Final = {"memory_kb": "memory_mb"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofBoot:
    """One boot of a testbox, and what it says of the testbox file and the kernel.

    `files` has the console and the logs of a boot that did not prove them; empty otherwise.
    """

    status: str
    reason: str
    findings: tuple[TuningFinding, ...]
    files: str

    @property
    def proven(self) -> bool:
        return self.status == "up" and all(finding.ok for finding in self.findings)


def prove(
    testbox: Testbox,
    image: Path,
    idle: Mapping[str, Value],
    site: Site,
    tell: Callable[[str], None],
) -> ProofBoot:
    """Boot `image` once by an order, as the service does, and compare what its kernel sees.

    `idle` are the facts of the idle system. A boot that fails is a status. Raises ParseError for
    results of the run that cannot be read.
    """
    programs = load_programs(site.jobs / "programs")
    [job] = testbox.demanded(expand(_JOB, "adopt.yaml", testbox, programs))
    order = BootOrder.from_json(
        check_order(
            {
                "version": 1,
                "kind": "boot",
                "order": "o0",
                "attempt": "a0",
                "kernel": {"build_key": "0" * 64, "image": str(image.absolute())},
                "testbox": testbox.name,
                "k": 0,
                "unit_jobs": [codec.plain(job)],
            }
        )
    )
    tell(_forecast(testbox, image, job))
    out = Path(tempfile.mkdtemp(prefix=f"swingbot-adopt-{testbox.name}-"))
    outcome = boots.boot(order, out, site, lambda phase, why: tell(f"{testbox.name} is {phase}"))
    findings: tuple[TuningFinding, ...] = ()
    if outcome["status"] == "up":
        run = _run(job, out / "results.tar", programs, outcome)
        findings = tuple(compared(testbox, outcome, idle, *run))
    proof = ProofBoot(
        status=outcome["status"],
        reason=outcome["reason"] or "",
        findings=findings,
        files=str(out),
    )
    if not proof.proven:
        return proof
    shutil.rmtree(out, ignore_errors=True)
    return replace(proof, files="")


def _forecast(testbox: Testbox, image: Path, job: UnitJob) -> str:
    """Return what is about to happen, and how long it takes."""
    usual, limit = boot_seconds(testbox, [job]), boot_limit(testbox, [job])
    text = (
        f"booting {image} once on {testbox.name}: about {rounded(usual)}, at most {rounded(limit)}"
    )
    if not isinstance(testbox.driver, SshDriver):
        return text
    back = rounded(testbox.driver.return_seconds)
    return f"{text}, and at most {back} until its idle system is back"


def _run(
    job: UnitJob, results: Path, programs: Mapping[str, Program], outcome: Outcome
) -> tuple[Mapping[str, str], TuningFinding]:
    """Return the files of the run, and whether it measured something.

    Whether its demands were met is compared fact by fact.
    """
    files = read_results(results).runs.get((job.name, 0), {})
    [run] = parse_results(results, [replace(job, demand={})], programs, outcome.get("facts"))
    values = [f"{metric} {value[0]:.6g}" for metric, value in run.samples.items() if value][:1]
    return files, TuningFinding(
        what="it measures",
        ok=run.status == "ok",
        found=run.reason or ", ".join(values),
        do="" if run.status == "ok" else "see what the program printed in results.tar",
    )


def compared(
    testbox: Testbox,
    outcome: Outcome,
    idle: Mapping[str, Value],
    files: Mapping[str, str],
    measured: TuningFinding,
) -> Iterator[TuningFinding]:
    """Yield each fact of a boot that came up against the file, else against the idle system.

    `files` are those of its run, which has the demanded facts.
    """
    facts = {"nr_node": 1, **(outcome.get("facts") or {})}  # a kernel without NUMA has no files
    yield measured
    for hardware in visible(testbox, facts):
        if hardware.stated:
            yield _of_file(testbox, hardware)
    for name in _OF_IDLE_SYSTEM:
        if name not in testbox.demand and name in idle:
            yield _of_idle_system(testbox, name, facts.get(name), idle[name])
    for name, wanted in testbox.demand.items():
        yield _demanded(testbox, name, wanted, not_as_demanded({name: wanted}, facts, files))
    if isinstance(testbox.driver, SshDriver):
        yield _returned(testbox.driver.return_seconds, facts.get("return_seconds"))


def _of_file(testbox: Testbox, hardware: VisibleHardware) -> TuningFinding:
    do = ""
    if not hardware.seen:
        do = (
            f"the kernel does not report it: see {_OPTIONS[hardware.fact]}, build it again as"
            f" kconfig {testbox.kconfig or '(none in the file)'}, and boot that"
        )
    elif hardware.lacking:
        do = (
            "the idle system has more, so this kernel or its configuration lacks them: see"
            f" {_OPTIONS[hardware.fact]}, and boot a kernel that has them"
        )
    elif hardware.more:
        key = _KEYS.get(hardware.fact, hardware.fact)
        do = f"the file states less than there is: set {key} in {testbox.name}.yaml"
    return TuningFinding(
        what=f"it has {hardware.amount(hardware.expected)} {hardware.noun}",
        ok=not do,
        found=hardware.amount(hardware.seen) if hardware.seen else "unknown",
        do=do,
    )


def _of_idle_system(testbox: Testbox, name: str, seen: object, idle: Value) -> TuningFinding:
    ok = seen is not None and str(seen) == str(idle)
    do = (
        f"see {_OPTIONS[name]}, and boot a kernel that agrees"
        if name in _OPTIONS
        else "find out whether another machine answers, or the kernel hides it"
    )
    if name in _OPTIONS and seen is not None:
        do += (
            f"; or, if the kernels under test may differ from the idle system in it, add"
            f" {name}: {seen} to demand in {testbox.name}.yaml"
        )
    found = "unknown" if seen is None else str(seen)
    return TuningFinding(
        what=f"{name} is that of the idle system",
        ok=ok,
        found=found if ok else f"{found}; there it is {idle}",
        do="" if ok else do,
    )


def _demanded(testbox: Testbox, name: str, wanted: str, why: str | None) -> TuningFinding:
    items = testbox.tuning.items if testbox.tuning else ()
    item = next((item.name for item in items if name in item.boot), "")
    remedy = (
        f"if this machine cannot have it, add {item} to tuning_without"
        if item
        else f"if it is wrong, correct demand in {testbox.name}.yaml"
    )
    look = f"see {_OPTIONS[name]}" if name in _OPTIONS else "see the kernel's configuration"
    return TuningFinding(
        what=f"{name} is {wanted}, as the file demands",
        ok=why is None,
        found=(why or "yes").removeprefix("demand not met: "),
        do="" if why is None else f"{look}; {remedy}",
    )


def _returned(limit: float, seconds: object) -> TuningFinding:
    ok = isinstance(seconds, int | float)
    return TuningFinding(
        what="its idle system is back",
        ok=ok,
        found=f"after {seconds} s of {limit:.0f}" if ok else f"not within {limit:.0f} s",
        do=""
        if ok
        else "look at its console, reset it, and correct return_seconds or its boot order",
    )
