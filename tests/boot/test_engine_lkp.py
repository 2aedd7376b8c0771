"""One boot through lkp-tests in a virtual testbox; LKP_SRC names the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from tests.boot.lab import virtual_lab

LKP_SRC = os.environ.get("LKP_SRC", "")
SMALL = {
    "nr_threads": "1",
    "mode": "process",
    "ipc": "pipe",
    "iterations": "2",
    "fds": "4",
    "loops": "50",
    "datasize": "100",
}


@pytest.mark.skipif(
    not LKP_SRC,
    reason="LKP_SRC is not given: the directory of an lkp-tests checkout, which is in no package",
)
def test_a_virtual_testbox_runs_a_unit_job_through_lkp_tests(
    tmp_path: Path, base_kernel: Path
) -> None:
    lab = virtual_lab(tmp_path, base_kernel)
    testbox = lab.site.workers / "testboxes" / "vm-icount.yaml"
    testbox.write_text(
        testbox.read_text() + f"engine: lkp\nlkp: {{src: {Path(LKP_SRC).resolve()}}}\n"
    )
    job = UnitJob(name="hackbench-small", program="hackbench", params=SMALL, runs=1)
    outcome = lab.boot([codec.plain(job)])
    assert (outcome["status"], outcome["runs"][0]["status"], outcome["facts"]["engine"]) == (
        "up",
        "ok",
        "lkp",
    )
    assert outcome["facts"]["version.lkp-tests"]
    [run] = parse_results(
        lab.out / "results.tar", [job], load_programs(lab.site.jobs / "programs"), outcome["facts"]
    )
    assert (run.status, run.reason) == ("ok", None)
    assert run.samples["hackbench.throughput"][0] > 0
