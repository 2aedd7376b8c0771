"""Fact sheets and demands on real boots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract.facts import known
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results, read_results
from tests.boot import lab as labs
from tests.boot.lab import virtual_lab
from tests.contract.labs import ROOT, a_job

THP = "/sys/kernel/mm/transparent_hugepage/enabled"
FAULT: dict[str, Any] = a_job(
    "page-fault", mode="process", nr_task="1", cycles="1", size="33554432"
)
SHOWS = f"cat {THP} /proc/sys/vm/swappiness\n"
# Facts that every x86 guest knows about itself and its host.
EVERYWHERE = {
    *(
        "kernel_release",
        "kernel_version",
        "build_id",
        "image_sha256",
        "cmdline",
        "cpu_model",
        "nr_cpu",
        "nr_socket",
        "caches",
        "microcode",
        "smt",
        "memory_kb",
    ),
    *(
        "thp_enabled",
        "thp_defrag",
        "shmem_enabled",
        "clocksource",
        "clocksource_end",
        "mitigations",
        "vm.swappiness",
        "kernel.randomize_va_space",
        "idle_driver",
    ),
    *(
        "cgroup_version",
        "load1",
        "load1_end",
        "steal_ticks",
        "stolen_ticks",
        "rootfs",
        "glibc",
        "sha256.perf",
        "version.perf",
        "sha256.page-fault",
        "qemu_version",
    ),
    *(
        "host_cpu_model",
        "host_kernel",
        "host_load1",
        "host_stolen_ticks",
        "perf_events",
        "ready_seconds",
        "ended",
    ),
}


@pytest.mark.parametrize("testbox", ["vm-icount", "vm-tcg"])
def test_a_boot_brings_its_fact_sheet(tmp_path: Path, base_kernel: Path, testbox: str) -> None:
    found = virtual_lab(tmp_path, base_kernel, testbox=testbox).boot([FAULT])["facts"]
    assert not EVERYWHERE - found.keys()
    assert "governor" not in found  # no cpufreq in a guest: not known, rather than empty
    assert len(found["build_id"]) == 40
    assert (
        found["nr_cpu"],
        found["thp_enabled"],
        found["clocksource"] in ("tsc", "hpet", "acpi_pm"),
    ) == ({"vm-icount": 1, "vm-tcg": 2}[testbox], "madvise", True)
    assert {name for name in found if known().get(name.removesuffix("_end")) is None} <= {
        name for name in found if name.startswith(("version.", "sha256."))
    }


def test_what_the_guest_can_set_is_set_for_its_runs_and_put_back(
    tmp_path: Path, base_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(labs.PROVOKING, "shows", SHOWS)
    jobs = [
        a_job("shows") | {"name": "before"},
        a_job("shows", runs=2)
        | {
            "name": "demanding",
            "demand": {"thp_enabled": "always", "vm.swappiness": "0", "clocksource": "tsc"},
        },
        a_job("shows") | {"name": "after"},
    ]
    lab = virtual_lab(tmp_path, base_kernel)
    outcome = lab.boot(jobs)
    assert [(run["status"], run.get("reason")) for run in outcome["runs"]] == [("ok", None)] * 4
    said = {
        key: files["stdout"].split("\n")[:2]
        for key, files in read_results(lab.out / "results.tar").runs.items()
    }
    usual, demanded = ["always [madvise] never", "60"], ["[always] madvise never", "0"]
    assert said == {
        ("before", 0): usual,
        ("demanding", 0): demanded,
        ("demanding", 1): demanded,
        ("after", 0): usual,
    }


def test_what_the_guest_cannot_be_makes_the_runs_invalid_and_no_others(
    tmp_path: Path, base_kernel: Path
) -> None:
    jobs = [
        FAULT | {"name": "fast", "demand": {"governor": "performance"}},
        FAULT | {"name": "any", "warmup": 1},
    ]
    lab = virtual_lab(tmp_path, base_kernel)
    outcome = lab.boot(jobs)
    why = "demand not met: governor is unknown in this boot; performance is required"
    expected = [("fast", 0, "invalid", why), ("any", 0, "warmup", None), ("any", 1, "ok", None)]
    assert [
        (run["unit_job"], run["number"], run["status"], run.get("reason"))
        for run in outcome["runs"]
    ] == expected
    runs = parse_results(
        lab.out / "results.tar",
        [codec.typed(UnitJob, job) for job in jobs],
        load_programs(ROOT / "jobs" / "programs"),
        outcome["facts"],
    )
    assert [(run.unit_job, run.number, run.status, bool(run.samples)) for run in runs] == [
        ("fast", 0, "invalid", False),
        ("any", 0, "warmup", False),
        ("any", 1, "ok", True),
    ]
    assert runs[0].reason == why


def test_a_fact_of_the_host_can_be_demanded_too(tmp_path: Path, base_kernel: Path) -> None:
    lab = virtual_lab(tmp_path, base_kernel)
    (run,) = lab.boot(
        [FAULT | {"demand": {"host_load1": "<0", "cpu_model": "QEMU TCG CPU version 2.5+"}}]
    )["runs"]
    assert run["status"] == "invalid"
    assert run["reason"].startswith("demand not met: host_load1 was ")
