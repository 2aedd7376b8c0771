"""Which hardware counters a machine has: from its kernel's list, from a boot, or by its kind."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from swingbot_jobs.testbox.counters import SCRIPT, USUAL, described, lacking, lacking_in_boot
from swingbot_jobs.testbox.definition import QemuDriver
from swingbot_worker.site import from_environment
from swingbot_worker.testbox import select_driver
from swingbot_worker.testbox.ssh import idle_system

CPU = ("cpu-cycles", "instructions", "branch-instructions", "branch-misses", "cache-references")
NO_PMU = (
    "the machine has no cycles, instructions, branches, branch-misses, cache-references,"
    " cache-misses: it has no PMU, as most virtual machines"
)


def ran(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=True)


def asked(root: Path) -> str:
    """The answer to the script of a machine whose sysfs is at `root`."""
    script = idle_system.question(str(root)).replace("/sys/bus/event_source/devices", str(root))
    return idle_system.answer(ran("sh", "-c", script).stdout)["pmus"]


def devices(root: Path, **pmus: tuple[str, ...]) -> Path:
    (root / "software").mkdir()
    for pmu, events in pmus.items():
        (root / pmu / "events").mkdir(parents=True)
        for event in (*events, "slots"):
            (root / pmu / "events" / event).touch()
    return root


def test_the_counters_of_a_cpu_are_those_in_the_kernels_list(tmp_path: Path) -> None:
    assert described(asked(devices(tmp_path, cpu=(*CPU, "cache-misses")))) == (
        f"all of {', '.join(USUAL)}"
    )
    (tmp_path / "cpu/events/cpu-cycles").unlink()
    (tmp_path / "cpu/events/cache-misses").unlink()
    assert described(asked(tmp_path)) == "the machine has no cycles, cache-misses"


def test_both_kinds_of_core_of_a_hybrid_cpu_are_named(tmp_path: Path) -> None:
    said = asked(devices(tmp_path, cpu_core=(*CPU, "cache-misses"), cpu_atom=CPU))
    assert described(said) == (
        "a hybrid CPU: cpu_core/.../ and cpu_atom/.../ are counted and added up;"
        " cpu_atom has no cache-misses"
    )


def test_a_machine_without_a_pmu_lacks_them_all(tmp_path: Path) -> None:
    assert described(asked(devices(tmp_path))) == NO_PMU
    assert described(asked(tmp_path / "nowhere")) == "unknown: the system has no perf events"


def test_the_kernels_list_says_what_perf_can_count_here() -> None:
    if os.uname().machine != "x86_64":
        pytest.skip("the names are those of x86")
    script = 'say() { printf "%s=%s\\n" "$1" "$2"; }\n' + SCRIPT
    pmus = idle_system.answer(ran("sh", "-c", script).stdout)["pmus"]
    counted = {
        event
        for event in USUAL
        if not ran("perf", "stat", "-x,", "-e", event, "true").stderr.startswith("<not supported>")
    }
    assert described(pmus) == (lacking(counted) or f"all of {', '.join(USUAL)}")


@pytest.mark.parametrize(
    ("fact", "sentence"),
    [
        ("", ""),
        ("none", "perf could count nothing"),
        ("task-clock,duration_time", NO_PMU),
        (
            "task-clock,{cycles,instructions,branches,branch-misses}",
            "the machine has no cache-references, cache-misses",
        ),
        (
            "{cycles,instructions},{branches,branch-misses},{cache-references,cache-misses}\n",
            "",
        ),
    ],
)
def test_a_boot_says_what_it_could_not_count(fact: str, sentence: str) -> None:
    assert lacking_in_boot(fact) == sentence


@pytest.mark.parametrize(
    ("accel", "cpu", "has"),
    [
        ("tcg", "max", False),
        ("tcg", "max,pmu=on", False),
        ("kvm", "host", True),
        ("kvm", "host,pmu=off", False),
        ("kvm", "max,-pmu", False),
        ("kvm", "Skylake-Server", False),
        ("kvm", "Skylake-Server,+pmu", True),
    ],
)
def test_only_kvm_can_give_a_virtual_machine_counters(accel: str, cpu: str, has: bool) -> None:
    testbox = select_driver.testbox_of("vm-tcg", from_environment({}))
    assert isinstance(testbox.driver, QemuDriver)
    how = replace(testbox.driver, accel=accel, cpu=cpu)
    findings = select_driver.driver_of(replace(testbox, driver=how)).check()
    said = [one.found for one in findings if one.what == "perf-stat"]
    assert said == ([] if has else [NO_PMU])
