"""The generated runner: its text, and what it does when a plain shell runs it here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from swingbot_jobs.parse import read_results
from swingbot_jobs.result import Results
from swingbot_jobs.sheet import facts_of
from swingbot_jobs.unit_job import UnitJob
from swingbot_worker import runner

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "testbox" / "run.sh"


def a_job(name: str = "a-job", program: str = "prints", runs: int = 1, **params: str) -> UnitJob:
    return UnitJob(name=name, program=program, params=params, runs=runs)


def test_the_script_is_the_golden_one() -> None:
    made = runner.script([a_job(runs=2, test="TCP_STREAM", runtime="3", odd="it's $HOME"), a_job("other", "hackbench")], alone=True)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(made)
    assert made == GOLDEN.read_text()


@pytest.mark.parametrize("alone", [True, False])
def test_the_script_has_nothing_that_shellcheck_knows_to_be_wrong(tmp_path: Path, alone: bool) -> None:
    script = tmp_path / "run.sh"
    script.write_text(runner.script([a_job(a="b c")], alone=alone))
    checked = subprocess.run([str(Path(sys.executable).with_name("shellcheck")), "-s", "dash", script], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_only_a_guest_of_its_own_is_swept() -> None:
    assert "kill -KILL" not in runner.script([a_job()], alone=False)
    assert "kill -KILL -1" in runner.script([a_job()], alone=True)


def run_here(tmp_path: Path, unit_jobs: list[UnitJob], programs: dict[str, str]) -> Results:
    """Run the script on this machine, as a command driver would, and read what it sent."""
    for name, text in programs.items():
        path = tmp_path / "programs" / name / "run"
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(0o755)
    script, stream = tmp_path / "run.sh", tmp_path / "results.tar"
    script.write_text(runner.script(unit_jobs, alone=False))
    env = os.environ | {"SWINGBOT_PROGRAMS": str(tmp_path / "programs"), "SWINGBOT_WORK": str(tmp_path / "work")}
    subprocess.run(["sh", "-c", f'exec sh "{script}" 3>"{stream}"'], env=env, check=True, timeout=60)
    return read_results(stream)


def test_each_run_comes_back_with_its_files(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job(runs=2, word="it's $HOME; no")], {"prints": 'echo "<$word>"; echo oops >&2; exit 3'})
    assert sorted(results.runs) == [("a-job", 0), ("a-job", 1)]
    for files in results.runs.values():
        assert files["stdout"] == "<it's $HOME; no>\n"
        assert files["stderr"] == "oops\n"
        assert files["rc"] == "3\n"
        assert float(files["seconds"]) >= 0


def test_facts_come_first_and_the_end_marker_last(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job()], {"prints": "echo 1"})
    assert {"kernel_release", "nr_cpu", "memory_kb", "cmdline", "perf_events", "ready_seconds", "ended"} <= set(facts_of(results.facts))
    assert not results.notes
    stream = (tmp_path / "results.tar").read_bytes()
    assert stream.index(b"facts/sheet\0") < stream.index(b"a-job/0/stdout\0") < stream.index(f"{runner.END}\0".encode())


def test_a_program_that_is_not_there_is_a_failed_run_and_the_next_one_runs(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job("first", "absent"), a_job("second")], {"prints": "echo 1"})
    assert results.runs["first", 0]["rc"] == "127\n"
    assert results.runs["second", 0]["rc"] == "0\n"


def test_a_run_that_a_signal_ends_has_failed(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job()], {"prints": "echo 1; kill -KILL $$"})
    assert results.runs["a-job", 0]["rc"] == "137\n"


def test_a_run_over_its_limit_is_ended_and_keeps_what_it_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "limit_of", lambda job, monitor=None: 1)
    results = run_here(tmp_path, [a_job(runs=2)], {"prints": "echo 1; exec sleep 4"})
    assert [results.runs["a-job", number]["rc"] for number in (0, 1)] == ["137\n", "137\n"]
    assert results.runs["a-job", 1]["stdout"] == "1\n"


def test_counting_never_touches_the_program_s_own_output(tmp_path: Path) -> None:
    results = run_here(tmp_path, [a_job()], {"prints": "echo 1"})
    assert results.runs["a-job", 0]["stdout"] == "1\n"
    assert results.runs["a-job", 0]["stderr"] == ""


def test_the_seconds_in_a_job_make_its_limit() -> None:
    assert runner.seconds_of(a_job(runtime="300")) > 300
    assert runner.limit_of(a_job(runtime="300")) > 2 * 300
    assert runner.limit_of(a_job(runtime="soon")) == runner.limit_of(a_job())


@pytest.mark.parametrize(
    ("program", "params", "measured"),
    [
        ("hackbench", {"iterations": "2", "nr_threads": "1", "fds": "20", "loops": "100"}, 1.55),
        ("page-fault", {"nr_task": "1", "cycles": "2", "size": "134217728"}, 3.07),
    ],
)
def test_fixed_work_is_estimated_from_the_work(program: str, params: dict[str, str], measured: float) -> None:
    some = runner.seconds_of(UnitJob(name="a", program=program, params=params, runs=1))
    much = runner.seconds_of(UnitJob(name="a", program=program, params={**params, list(params)[1]: "90"}, runs=1))
    assert measured < some < measured + 15
    assert much > 5 * some
    assert runner.seconds_of(a_job(program=program)) == runner.UNSAID_SECONDS
