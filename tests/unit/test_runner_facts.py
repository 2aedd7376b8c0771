"""Facts that the generated script records, sets and restores: its text and its shell functions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from swingbot_jobs.contract.facts import known
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_worker import runner
from swingbot_worker.runner.fact_script import functions


def a_job(**more: object) -> UnitJob:
    return UnitJob(name="a-job", program="prints", params={}, runs=1, **more)  # type: ignore[arg-type]


def lines_of(*jobs: UnitJob) -> list[str]:
    """The lines of the script that are its jobs'."""
    return runner.script(jobs, alone=True).partition("\nprobe_monitors\n")[2].splitlines()


def test_every_file_of_the_list_is_asked_for_once_and_what_may_change_twice() -> None:
    words = functions([]).split()
    again = {file for fact in known().values() if fact.again for file in fact.files}
    for file in {file for fact in known().values() for file in fact.files}:
        assert words.count(file) == (2 if file in again else 1), file


def test_a_job_that_demands_nothing_runs_as_ever() -> None:
    assert "hold" not in runner.script([a_job()], alone=True)
    assert [line.split()[0] for line in lines_of(a_job())] == ["one_run", "facts_again", "finish"]


def test_what_is_demanded_is_set_looked_at_around_each_run_and_put_back() -> None:
    lines = lines_of(a_job(demand={"thp_enabled": "always", "clocksource": "tsc"}), a_job())
    assert [line.split()[0] for line in lines] == [
        "hold",
        "look",
        "one_run",
        "look",
        "seen",
        "put_back",
        "one_run",
        "facts_again",
        "finish",
    ]
    assert lines[0] == "hold always /sys/kernel/mm/transparent_hugepage/enabled"
    assert lines[1] == "look facts-before a-job 0 /sys/kernel/mm/transparent_hugepage/enabled"


def test_warm_up_runs_come_first_and_are_runs_like_others() -> None:
    assert [
        line.split()[2] for line in lines_of(a_job(warmup=2)) if line.startswith("one_run")
    ] == ["0", "1", "2"]


def test_a_value_is_a_word_for_the_shell_whatever_it_says() -> None:
    assert (
        lines_of(a_job(demand={"net.ipv4.tcp_congestion_control": "a b"}))[0]
        == "hold 'a b' /proc/sys/net/ipv4/tcp_congestion_control"
    )


def shell(tmp_path: Path, lines: str) -> str:
    script = (
        'send() {\n\techo "sent: $(ls "$1")"\n}\nmkdir -p facts\n'
        + functions([a_job(demand={"thp_enabled": "always"})])
        + lines
    )
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stderr == ""
    return done.stdout


def test_files_get_back_what_was_in_them_in_turn(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("60\n")
    (tmp_path / "two").write_text("always [madvise] never\n")
    (tmp_path / "same").write_text("[never] always\n")
    assert shell(
        tmp_path,
        (
            'hold 5 "$PWD"/one\nhold 7 "$PWD"/one "$PWD"/absent\nhold always "$PWD"/t*\nhold '
            'never "$PWD"/same\ncat one two same held\nput_back\n'
        ),
    ) == (
        f"7\nalways\n[never] always\n{tmp_path}/one 60\n{tmp_path}/one 5\n{tmp_path}/two madvise\n"
    )
    assert [(tmp_path / name).read_text() for name in ("one", "two", "same")] == [
        "60\n",
        "madvise\n",
        "[never] always\n",
    ]
    assert not (tmp_path / "held").exists()


@pytest.mark.parametrize("end", ["exit 0", "kill -TERM $$"])
def test_a_script_that_ends_early_puts_back_what_it_can(tmp_path: Path, end: str) -> None:
    (tmp_path / "one").write_text("60\n")
    script = functions([a_job(demand={"thp_enabled": "always"})]) + f'hold 5 "$PWD"/one\n{end}\n'
    subprocess.run(
        ["sh", "-c", f"trap 'exit 1' TERM\n{script}"], cwd=tmp_path, check=False, timeout=20
    )
    assert (tmp_path / "one").read_text() == "60\n"


def test_what_is_looked_at_goes_with_the_run(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("60\nmore\n")
    said = shell(
        tmp_path,
        'look facts-before job 0 "$PWD"/one "$PWD"/absent\ncat job/0/facts-before\nseen job 0\n',
    )
    assert said == f"{tmp_path}/one:60\n{tmp_path}/one:more\nsent: facts-before\n"
    assert not (tmp_path / "job").exists()
