"""The memory that a job asks for, on a real kernel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.boot.lab import virtual_lab
from tests.contract.labs import a_job

LIMIT = 64 << 20


def test_a_limit_holds_for_its_runs_alone_and_the_oom_killer_is_an_outcome(
    tmp_path: Path, base_kernel: Path
) -> None:
    common: dict[str, Any] = {"mode": "process", "nr_task": "1", "cycles": "1"}
    limited = common | {"memory_max": str(LIMIT)}
    jobs = [
        a_job("page-fault", runs=2, **limited, size=str(2 * LIMIT)) | {"name": "too-large"},
        a_job("page-fault", **limited, size=str(LIMIT // 2)) | {"name": "fits"},
        a_job("page-fault", **common, size=str(2 * LIMIT)) | {"name": "free"},
    ]
    lab = virtual_lab(tmp_path, base_kernel)
    outcome = lab.boot(jobs)
    *killed, fits, free = outcome["runs"]
    assert (fits["status"], free["status"]) == ("ok", "ok")
    stamps = set()
    for run in killed:
        assert run["status"] == "failed"
        line = re.fullmatch(
            r"the OOM killer ended it: \[ *([0-9.]+)\] Memory cgroup out of memory:"
            r" Killed process \d+ \(page-fault\).*",
            run["reason"],
        )
        assert line, run["reason"]
        stamps.add(line[1])
    assert len(stamps) == 2  # each run has its own line
    assert outcome["facts"]["set.memory_max"] == LIMIT
