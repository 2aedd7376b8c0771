"""What a boot says of a new testbox file: each fact against the file, else the idle system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs.testbox.file import load_file
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker.testbox.adopt.proof_boot import compared

RACK = replace(
    load_file(Path(__file__).parents[2] / "workers/testboxes/examples/serial-ipmi.yaml"),
    name="rack1",
    nr_cpu=128,
    nr_node=2,
    memory_mb=256_000,
    kconfig="server-x86_64",
    demand={"swap_kb": "0"},
    tuning=None,
)
IDLE: dict[str, Any] = {
    "cpu_model": "Xeon",
    "nr_socket": 2,
    "microcode": "0x5003604",
    "clocksource": "tsc",
    "freq_driver": "intel_pstate",
}
BOOT: dict[str, Any] = {
    **IDLE,
    "nr_cpu": 128,
    "nr_node": 2,
    "memory_kb": 255_000_000,
    "swap_kb": 0,
    "return_seconds": 71.3,
    "cmdline": "panic=10",
}
MEASURED = TuningFinding(what="it measures", ok=True, found="page-fault.per_process_ops 1")


def findings(changed: dict[str, Any], **of_file: Any) -> list[TuningFinding]:
    facts = {name: value for name, value in (BOOT | changed).items() if value is not None}
    return list(compared(replace(RACK, **of_file), {"facts": facts}, IDLE, {}, MEASURED))


def test_a_kernel_that_sees_all_proves_the_file() -> None:
    found = findings({})
    assert all(finding.ok and not finding.do for finding in found)
    assert [finding.what for finding in found] == [
        "it measures",
        "it has 128 CPUs",
        "it has 2 NUMA nodes",
        "it has 256000 MiB of memory",
        "cpu_model is that of the idle system",
        "nr_socket is that of the idle system",
        "microcode is that of the idle system",
        "clocksource is that of the idle system",
        "freq_driver is that of the idle system",
        "swap_kb is 0, as the file demands",
        "its idle system is back",
    ]


@pytest.mark.parametrize(
    ("changed", "what", "found", "do"),
    [
        ({"nr_cpu": 8}, "it has 128 CPUs", "8", "this kernel or its configuration lacks them"),
        (
            {"nr_cpu": None},
            "it has 128 CPUs",
            "unknown",
            "build it again as kconfig server-x86_64",
        ),
        ({"nr_cpu": 256}, "it has 128 CPUs", "256", "set nr_cpu in rack1.yaml"),
        (
            {"nr_node": None},
            "it has 2 NUMA nodes",
            "1",
            "CONFIG_NUMA and CONFIG_ACPI_NUMA, and boot a kernel that has them",
        ),
        (
            {"memory_kb": 100_000_000},
            "it has 256000 MiB of memory",
            "97656",
            "mem=, memmap= and crashkernel= of cmdline",
        ),
        ({"memory_kb": 900_000_000}, "it has 256000 MiB of memory", "878906", "set memory_mb in"),
        (
            {"clocksource": "hpet"},
            "clocksource is that of the idle system",
            "hpet; there it is tsc",
            "add clocksource: hpet to demand in rack1.yaml",
        ),
        (
            {"freq_driver": None},
            "freq_driver is that of the idle system",
            "unknown; there it is intel_pstate",
            "see CONFIG_X86_INTEL_PSTATE",
        ),
        (
            {"cpu_model": "EPYC"},
            "cpu_model is that of the idle system",
            "EPYC; there it is Xeon",
            "another machine answers",
        ),
        (
            {"swap_kb": 7},
            "swap_kb is 0, as the file demands",
            "swap_kb was 7; 0 is required",
            "correct demand in rack1.yaml",
        ),
        ({"return_seconds": None}, "its idle system is back", "not within 400 s", "reset it"),
    ],
)
def test_each_difference_is_one_finding_that_says_what_to_do(
    changed: dict[str, Any], what: str, found: str, do: str
) -> None:
    [finding] = [one for one in findings(changed) if not one.ok]
    assert (finding.what, finding.found) == (what, found)
    assert do in finding.do and "None" not in finding.do


def test_what_the_command_line_leaves_of_the_machine_is_expected() -> None:
    assert all(one.ok for one in findings({"nr_cpu": 4, "cmdline": "maxcpus=4"}))


def test_what_the_file_demands_is_not_compared_with_the_idle_system() -> None:
    demand = {"freq_driver": "acpi-cpufreq"}
    found = findings({"freq_driver": "acpi-cpufreq"}, demand=demand)
    assert all(one.ok for one in found)
    [wrong] = [one for one in findings({}, demand=demand) if not one.ok]
    assert wrong.found == "freq_driver was intel_pstate; acpi-cpufreq is required"


def test_a_kernel_without_numa_has_one_node() -> None:
    assert all(one.ok for one in findings({"nr_node": None}, nr_node=1))


def test_a_file_without_nodes_is_not_compared_with_them() -> None:
    assert all(one.ok for one in findings({"nr_node": 1}, nr_node=None))
