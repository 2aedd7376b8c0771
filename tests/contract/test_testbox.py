"""What every driver promises (swingbot_worker/testbox/driver.py).

Here with machines that are only played: by a command, and by a bare-metal testbox alone and in a
cluster. tests/boot repeats it in QEMU.
"""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs.limits import RESULT_ARCHIVE_BYTES
from swingbot_jobs.reading.parse import read_results
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import lease, limits
from swingbot_worker.testbox import select_driver
from swingbot_worker.testbox.driver import Boot, Driver, Job, Payload, Request
from tests.contract.labs import JOBS, Lab, a_job, played_lab
from tests.contract.played import cluster_lab, hasten, ssh_lab


@pytest.fixture(params=["command", "ssh", "cluster"])
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Lab:
    if request.param == "command":
        return played_lab(tmp_path)
    hasten(monkeypatch, tmp_path, quiet_seconds=6.0)
    return ssh_lab(tmp_path) if request.param == "ssh" else cluster_lab(tmp_path)


# --- rules for every driver


def test_a_boot_that_comes_up_brings_every_run_and_its_facts(lab: Lab) -> None:
    outcome = lab.boot()
    assert (outcome["status"], outcome["reason"]) == ("up", None)
    assert [(run["unit_job"], run["number"], run["status"]) for run in outcome["runs"]] == [
        ("prints-7", 0, "ok"),
        ("prints-7", 1, "ok"),
    ]
    assert {"kernel_release", "nr_cpu", "memory_kb", "testbox_label", "image_sha256"} <= set(
        outcome["facts"]
    )
    results = read_results(lab.out / "results.tar")
    assert results.runs["prints-7", 1]["stdout"] == "result: it's 7\n"


def test_a_kernel_that_lacks_what_a_program_needs_is_refused_before_anything_begins(
    lab: Lab,
) -> None:
    with (lab.site.jobs / "programs" / "prints" / "meta.yaml").open("a") as meta:
        meta.write("kconfig_needed: [FUNCTION_PROFILER]\n")
    fragments, config = lab.site.kconfig / "fragments", lab.image.with_name("config")
    fragments.mkdir(parents=True)
    (fragments / "huge.config").write_text("# more\n# more\nCONFIG_FUNCTION_PROFILER=y\n")
    (fragments / "trace.config").write_text("CONFIG_FUNCTION_PROFILER=y\n")
    config.write_text("CONFIG_SMP=y\n")
    outcome = lab.boot()
    assert (outcome["status"], outcome["fault"], lab.phases) == ("infra", "order", [])
    assert outcome["reason"] == (
        "The kernel lacks options that program prints needs: CONFIG_FUNCTION_PROFILER=y; add the"
        " fragment trace to the kernel configuration of the tree or the testbox."
    )
    for file in fragments.iterdir():
        file.unlink()
    assert "; add a fragment that has them to the kernel" in lab.boot()["reason"]
    config.write_text("CONFIG_FUNCTION_PROFILER=y\n")
    assert lab.boot()["status"] == "up"


def test_an_invalid_program_that_the_job_does_not_run_ends_no_boot(lab: Lab) -> None:
    other = lab.site.jobs / "programs" / "other" / "meta.yaml"
    other.parent.mkdir()
    other.write_text("kind: nothing\n")
    assert lab.boot()["status"] == "up"


def test_every_file_is_listed_with_its_sha256(lab: Lab) -> None:
    outcome = lab.boot()
    assert {"console.log", "results.tar", "job.sh"} <= set(outcome["files"])
    assert "one_run" in (lab.out / "job.sh").read_text()
    for name, listed in outcome["files"].items():
        content = (lab.out / name).read_bytes()
        assert listed == {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def test_a_run_that_fails_or_says_nothing_spoils_no_other(lab: Lab) -> None:
    outcome = lab.boot(
        [a_job("fails"), a_job("silent"), a_job("rubbish"), a_job("prints", word="8")]
    )
    assert outcome["status"] == "up"
    assert [(run["status"], run.get("reason")) for run in outcome["runs"]] == [
        ("failed", "fails exited with status 3: it broke"),
        ("failed", "silent printed nothing"),
        ("ok", None),
        ("ok", None),
    ]


def test_a_panic_is_a_result_and_the_runs_before_it_are_kept(lab: Lab) -> None:
    outcome = lab.boot([a_job("prints", word="8"), a_job("panics")])
    assert outcome["status"] == "panicked"
    assert outcome["reason"].startswith(f"{lab.who}Kernel panic - not syncing: Out of memory")
    assert outcome["runs"][1]["status"] == "missing"


def test_an_image_that_is_not_the_ordered_one_is_our_fault(lab: Lab) -> None:
    wrong = {"build_key": "0" * 64, "image": str(lab.image), "image_sha256": "1" * 64}
    for kernel in (
        wrong,
        wrong | {"image": "/nowhere/bzImage"},
        {"build_key": "0" * 64, "image_sha256": "1" * 64},
    ):
        outcome = lab.boot(kernel=kernel)
        assert outcome["status"] == "infra"
        assert "image" in outcome["reason"]


def test_an_unknown_testbox_is_reported_with_the_known_ones(lab: Lab) -> None:
    for name in ("no-testbox", "../testboxes/no-testbox"):
        outcome = lab.boot(testbox=name)
        assert outcome["status"] == "infra"
        assert lab.testbox in outcome["reason"]


def test_an_unknown_program_is_reported_before_anything_boots(lab: Lab) -> None:
    outcome = lab.boot([a_job("nonsense")])
    assert outcome["status"] == "infra"
    assert "nonsense" in outcome["reason"]
    assert "console.log" not in outcome["files"]


def test_a_second_attempt_shows_nothing_of_the_first(lab: Lab) -> None:
    assert lab.boot()["status"] == "up"
    outcome = lab.boot([a_job("nonsense")])
    assert outcome["files"] == {}


def test_a_testbox_that_is_busy_is_waited_for_until_the_deadline_and_nothing_begins(
    lab: Lab,
) -> None:
    testbox = select_driver.testbox_of(lab.testbox, lab.site)
    with lease.for_testboxes(lab.site.cache, testbox.nodes or [testbox.name]):
        outcome = lab.boot(deadline_seconds=0.2)
    assert outcome["status"] == "infra"
    assert "busy with another boot" in outcome["reason"]
    assert lab.phases == []
    assert "console.log" not in outcome["files"]


def test_after_a_boot_its_testbox_is_free_again(lab: Lab) -> None:
    lab.boot()
    testbox = select_driver.testbox_of(lab.testbox, lab.site)
    with lease.for_testboxes(lab.site.cache, testbox.nodes or [testbox.name], patience=-1):
        pass


def test_a_check_says_what_to_do_about_what_is_missing(lab: Lab) -> None:
    findings = select_driver.driver_of(select_driver.testbox_of(lab.testbox, lab.site)).check()
    assert findings
    assert all(finding.do for finding in findings if not finding.ok)


class _Floods:
    """A driver after whose boot the console, its own log and the results are sparse files."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def payload(self, job: Job) -> Payload:
        return self._driver.payload(job)

    def boot(self, request: Request) -> Boot:
        boot = self._driver.boot(request)
        for name in ("console.log", "server.console.log", "driver.log", "results.tar"):
            with (request.out / name).open("ab") as file:
                file.truncate(2 << 30)
        return boot

    def check(self) -> list[TuningFinding]:
        return self._driver.check()


def test_what_a_guest_can_fill_is_kept_up_to_its_limit(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver_of = select_driver.driver_of
    monkeypatch.setattr(select_driver, "driver_of", lambda testbox: _Floods(driver_of(testbox)))
    outcome = lab.boot()
    sizes = {path.name: path.stat().st_size for path in lab.out.iterdir() if path.is_file()}
    assert sizes["console.log"] == sizes["driver.log"] == limits.CONSOLE_BYTES
    assert sizes["server.console.log"] == limits.CONSOLE_BYTES
    assert sizes["results.tar"] == RESULT_ARCHIVE_BYTES + 1
    assert all(run["status"] != "ok" for run in outcome["runs"])


# --- rules of the command driver


@pytest.mark.parametrize(
    ("status", "exit_status"), [("panicked", 10), ("oopsed", 11), ("hung", 12)]
)
def test_a_command_s_exit_status_says_what_the_kernel_did(
    tmp_path: Path, status: str, exit_status: int
) -> None:
    played = played_lab(tmp_path)
    played.image.write_text(str(exit_status))
    outcome = played.boot()
    assert (outcome["status"], outcome["reason"]) == (status, "the last words")


def test_a_command_can_say_that_a_limit_of_its_own_ended_the_boot(tmp_path: Path) -> None:
    played = played_lab(tmp_path)
    played.image.write_text("13")
    outcome = played.boot()
    assert (outcome["status"], outcome["fault"]) == ("infra", "limit")


@pytest.mark.parametrize(("named", "purpose"), [({}, "search"), ({"purpose": "gate-2"}, "gate-2")])
def test_a_command_knows_which_boot_of_which_purpose_this_is(
    tmp_path: Path, named: dict[str, Any], purpose: str
) -> None:
    lab = played_lab(tmp_path)
    lab.boot(JOBS, **named)
    assert f"k=3 of {purpose}\n" in (lab.out / "console.log").read_text()


def test_a_command_that_fails_is_our_fault_and_is_quoted(tmp_path: Path) -> None:
    played = played_lab(tmp_path)
    played.image.write_text("1 no route to the testbox")
    outcome = played.boot()
    assert outcome["status"] == "infra"
    assert "status 1 (no route to the testbox)" in outcome["reason"]


def test_a_command_that_brings_no_results_is_not_up(tmp_path: Path) -> None:
    played = played_lab(tmp_path)
    played.image.write_text("0")
    outcome = played.boot()
    assert outcome["status"] == "infra"
    assert "no results.tar" in outcome["reason"]


def test_a_command_that_is_not_there_is_named(tmp_path: Path) -> None:
    played = played_lab(tmp_path)
    path = played.site.workers / "testboxes" / "played.yaml"
    path.write_text(path.read_text().replace(sys.executable, "no-such-command"))
    outcome = played.boot()
    assert outcome["status"] == "infra"
    assert "no-such-command" in outcome["reason"]


def test_a_command_over_its_time_is_ended(tmp_path: Path) -> None:
    played = played_lab(tmp_path)
    (tmp_path / "machine.py").write_text("import time\ntime.sleep(60)\n")
    outcome = played.boot(deadline_seconds=0.5)
    assert (outcome["status"], outcome["fault"]) == ("infra", "limit")
    assert outcome["reason"] == "A limit ended the boot: not done after 0 s"
    assert outcome["seconds"] < 20


def test_a_command_never_sees_the_token(tmp_path: Path) -> None:
    played = played_lab(tmp_path)
    (tmp_path / "machine.py").write_text(
        "import os, shutil\n"
        "shutil.copy(os.environ['SWINGBOT_ORDER'], os.environ['SWINGBOT_OUT'] + '/results.tar')\n"
    )
    played.boot(exchange={"url": "http://x.example/", "token": "secret"})
    seen = (played.out / "results.tar").read_text()
    assert json.loads(seen)["order"] == "o1"
    assert "secret" not in seen


def test_a_wrong_testbox_file_is_reported_with_its_line(tmp_path: Path) -> None:
    played = played_lab(tmp_path)
    (played.site.workers / "testboxes" / "bad.yaml").write_text("name: bad\ncolour: red\n")
    outcome = replace(played, testbox="bad").boot()
    assert outcome["status"] == "infra"
    assert "bad.yaml:1: tbox_group: is missing" in outcome["reason"]
