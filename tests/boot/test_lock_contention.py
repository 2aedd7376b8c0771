"""The monitor lock-contention on a real kernel with two CPUs: real waits, and how long they were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from tests.boot.lab import virtual_lab
from tests.contract.labs import ROOT

JOB = UnitJob(
    name="faults",
    program="page-fault",
    params={"mode": "process", "nr_task": "2", "cycles": "3", "size": str(128 << 20)},
    runs=1,
    monitors=("lock-contention",),
)
PREFIX = "lock-contention."


def test_two_cpus_that_fault_pages_in_wait_for_locks(tmp_path: Path, base_kernel: Path) -> None:
    lab = virtual_lab(tmp_path, base_kernel, box="vm-tcg", boot_seconds=6)
    (lab.site.jobs / "programs" / "lock-contention").symlink_to(
        ROOT / "jobs" / "programs" / "lock-contention"
    )
    outcome = lab.boot([JOB.to_json()])
    assert outcome["status"] == "up", outcome["reason"]
    plain, watched = parse_results(
        lab.out / "results.tar", [JOB], load_programs(ROOT / "jobs" / "programs")
    )
    assert (plain.status, watched.status, watched.monitor) == ("ok", "ok", "lock-contention")
    found = {
        name.removeprefix(PREFIX): values[0]
        for name, values in watched.samples.items()
        if name.startswith(PREFIX)
    }
    assert found["contended"] > 0
    assert 0 < found["recorded_seconds"] < 10
    parts = [found[f"spinning_pct.{lock}"] for lock in ("zone", "lru", "other")]
    assert sum(parts) == pytest.approx(found["spinning_pct"])
    assert 0 < found["spinning_pct"] <= 100
