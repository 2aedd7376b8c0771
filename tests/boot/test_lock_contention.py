"""The monitor lock-contention on a real kernel with two CPUs: real waits,
and how long they were recorded.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from tests.boot.lab import virtual_lab
from tests.contract.labs import ROOT

FAULTS = {"mode": "process", "nr_task": "2", "cycles": "1", "size": str(128 << 20)}
HACKBENCH = {
    "mode": "process",
    "ipc": "socket",
    "nr_threads": "2",
    "iterations": "1",
    "loops": "60",
    "fds": "20",
    "datasize": "100",
}
JOBS = [
    UnitJob(name=name, program=name, params=params, runs=1, monitors=("lock-contention",))
    for name, params in (("page-fault", FAULTS), ("hackbench", HACKBENCH))
]
PREFIX = "lock-contention."


def test_two_cpus_wait_for_each_others_locks(tmp_path: Path, base_kernel: Path) -> None:
    lab = virtual_lab(tmp_path, base_kernel, testbox="vm-tcg", boot_seconds=6)
    (lab.site.jobs / "programs" / "lock-contention").symlink_to(
        ROOT / "jobs" / "programs" / "lock-contention"
    )
    outcome = lab.boot(codec.plain(JOBS))
    assert outcome["status"] == "up", outcome["reason"]
    programs = load_programs(ROOT / "jobs" / "programs")
    runs = parse_results(lab.out / "results.tar", JOBS, programs)
    assert [(run.status, run.reason) for run in runs if run.status != "ok"] == []
    waits = []
    for run in runs:
        if run.monitor is not None:
            found = {name.removeprefix(PREFIX): one[0] for name, one in run.samples.items()}
            assert 0 < found["recorded_seconds"] < 10
            parts = [found[f"spinning_pct.{lock}"] for lock in ("zone", "lru", "other")]
            assert sum(parts) == pytest.approx(found["spinning_pct"])
            assert 0 <= found["spinning_pct"] <= 100
            waits.append(found["contended"])
    # On a busy host two virtual CPUs may not run at once during one of the two recordings.
    assert len(waits) == 2
    assert max(waits) > 0
