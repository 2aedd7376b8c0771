"""What a boot of each shipped job costs on a real machine, and which do not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot_jobs.language.job_costs import JobCost, job_costs
from swingbot_jobs.language.job_files import read_all
from swingbot_jobs.testbox.definition import Testbox
from swingbot_jobs.testbox.file import load_all, load_file
from swingbot_worker.site import from_environment
from swingbot_worker.testbox import select_driver
from swingbot_worker.testbox.check import check
from tests.programs import PROGRAMS

ROOT: Final = Path(__file__).resolve().parents[2]
RACK: Final = load_file(ROOT / "workers/testboxes/examples/serial-ipmi.yaml")
LAB_SECONDS: Final = 43_200  # boot.deadline_seconds as shipped


def costs(testbox: Testbox) -> dict[str, JobCost]:
    return {one.job: one for one in job_costs(read_all(ROOT / "jobs"), testbox, PROGRAMS)}


@pytest.mark.parametrize("cpus", [8, 32, 128])
def test_every_shipped_job_can_be_requested_on_a_server(cpus: int) -> None:
    found = costs(replace(RACK, nr_cpu=cpus))
    assert found["will-it-scale.yaml"].runs == 108
    assert found["will-it-scale-page_fault1.yaml"].seconds > 5400
    assert {job for job, one in found.items() if one.seconds > LAB_SECONDS} == set()
    assert not any(job.startswith("vm-") for job in found)


def test_work_that_all_cpus_share_takes_a_server_no_longer_than_a_desktop() -> None:
    small, large = (costs(replace(RACK, nr_cpu=cpus)) for cpus in (8, 128))
    assert large["hackbench.yaml"].seconds <= small["hackbench.yaml"].seconds
    # its tasks take turns with one lock
    assert large["page-fault.yaml"].seconds > small["page-fault.yaml"].seconds


def test_an_emulated_testbox_has_its_own_jobs() -> None:
    shipped = {path.name for path in (ROOT / "jobs").glob("vm-*.yaml")}
    assert costs(load_all(ROOT / "workers/testboxes")["vm-tcg"]).keys() == shipped


def test_the_check_says_what_each_job_costs_and_which_is_refused() -> None:
    site = from_environment({})
    testbox = replace(select_driver.testbox_of("vm-tcg", site), longest_boot_seconds=60.0)
    found = {one.what: one for one in check(testbox, site)}
    assert found["cost of vm-hackbench.yaml"].found.endswith("2 runs, about 28 s a boot")
    long = found["cost of vm-will-it-scale.yaml"]
    assert (long.ok, long.found.partition("; ")[2]) == (
        True,
        "refused, the limit of this testbox is 60 s",
    )


def test_lint_remarks_on_a_job_that_is_too_long_for_a_testbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = tmp_path / "workers"
    (workers / "testboxes").mkdir(parents=True)
    (workers / "kconfig").symlink_to(ROOT / "workers/kconfig")
    text = (ROOT / "workers/testboxes/examples/serial-ipmi.yaml").read_text()
    (workers / "testboxes/serial-ipmi.yaml").write_text(f"longest_boot_seconds: 3600\n{text}")
    monkeypatch.setenv("SWINGBOT_PATHS_WORKERS", str(workers))
    words = ["jobs", "lint", "will-it-scale-page_fault1.yaml", "--testbox", "serial-ipmi"]
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == 0
    assert (
        "a boot needs about 94 minutes on serial-ipmi, so requests there are refused:"
        " the limit of this testbox is 1 h (longest_boot_seconds in its file)" in answer.output
    )
