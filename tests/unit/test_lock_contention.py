"""lock-contention: shares of CPU time by lock, and the script that notes how long was recorded."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swingbot_jobs.language.program import find_metric
from swingbot_jobs.reading.parse import parse_file
from tests.programs import PROGRAMS

RUN = PROGRAMS["lock-contention"].directory / "run"
HEAD = " contended   total wait     max wait     avg wait         type   caller\n\n"


def samples(tmp_path: Path, text: str) -> dict[str, float]:
    (tmp_path / "raw").write_text(text)
    found = parse_file("lock-contention", tmp_path / "raw", PROGRAMS)["samples"]
    assert isinstance(found, dict)
    return {name.removeprefix("lock-contention."): values[0] for name, values in found.items()}


def row(total: str, caller: str, kind: str = "spinlock") -> str:
    return f"         2    {total}     1.00 us     1.00 us   {kind:>10}   {caller}+0x1f\n"


def test_spinning_is_a_share_of_all_cpus_time_split_by_lock(tmp_path: Path) -> None:
    found = samples(
        tmp_path,
        "recorded 2.00 s on 4 CPUs\n"
        + HEAD
        + row("400.00 ms", "get_page_from_freelist")
        + row("80.00 ms", "free_pcppages_bulk.constprop.0")
        + row("160.00 ms", "folio_batch_move_lru")
        + row("40.00 ms", "try_to_wake_up")
        + row("40.00 ms", "do_wait", "rwlock:R")
        + row("3.00 s", "do_vmi_munmap", "rwsem:W"),
    )
    assert {name: found[name] for name in found if name.startswith("spinning_pct")} == {
        "spinning_pct": pytest.approx(9),
        "spinning_pct.zone": pytest.approx(6),
        "spinning_pct.lru": pytest.approx(2),
        "spinning_pct.other": pytest.approx(1),
        "spinning_pct.by.get_page_from_freelist": pytest.approx(5),
        "spinning_pct.by.free_pcppages_bulk.constprop.0": pytest.approx(1),
        "spinning_pct.by.folio_batch_move_lru": pytest.approx(2),
        "spinning_pct.by.try_to_wake_up": pytest.approx(0.5),
        "spinning_pct.by.do_wait": pytest.approx(0.5),
    }
    assert found["sleeping_tasks"] == pytest.approx(1.5)


def test_parts_add_up_to_the_whole(tmp_path: Path) -> None:
    raw = (PROGRAMS["lock-contention"].directory / "samples" / "guest-page-fault.raw").read_text()
    found = samples(tmp_path, raw)
    parts = [found[f"spinning_pct.{lock}"] for lock in ("zone", "lru", "other")]
    callers = [value for name, value in found.items() if name.startswith("spinning_pct.by.")]
    assert sum(parts) == pytest.approx(found["spinning_pct"])
    assert sum(callers) == pytest.approx(found["spinning_pct"])


def test_nothing_waited_for_is_zero_percent(tmp_path: Path) -> None:
    found = samples(tmp_path, "recorded 2.00 s on 2 CPUs\n" + HEAD)
    assert (found["spinning_pct"], found["spinning_pct.zone"], found["contended"]) == (0, 0, 0)


def test_on_one_cpu_nobody_spins_and_the_share_is_missing(tmp_path: Path) -> None:
    found = samples(tmp_path, "recorded 2.00 s on 1 CPUs\n" + HEAD + row("1.00 s", "x", "mutex"))
    assert found["sleeping_tasks"] == 0.5
    assert not [name for name in found if name.startswith("spinning_pct")]


@pytest.mark.parametrize("line", ["", "recorded 0.00 s on 2 CPUs\n", "recorded 2 s on x CPUs\n"])
def test_without_the_recorded_time_there_are_no_shares(tmp_path: Path, line: str) -> None:
    found = samples(tmp_path, line + HEAD + row("1.00 ms", "free_one_page"))
    assert found["total_wait_us"] == 1000
    assert not [name for name in found if "spinning" in name or "sleeping" in name]


def test_the_split_by_lock_is_compared_and_the_callers_are_not() -> None:
    judged = {
        name: metric.judged
        for name in ("spinning_pct", "spinning_pct.zone", "spinning_pct.by.free_one_page")
        if (metric := find_metric(PROGRAMS, f"lock-contention.{name}"))
    }
    assert judged == {
        "spinning_pct": True,
        "spinning_pct.zone": True,
        "spinning_pct.by.free_one_page": False,
    }


PERF = """#!/bin/sh
case $2 in
record) shift; while [ "$1" != -- ]; do shift; done; shift; "$@"; touch "$at/data" ;;
contention) cat "$at/table" >&2 ;;
esac
"""


def watched(tmp_path: Path, *command: str) -> tuple[int, str]:
    """Exit status and what the monitor's script wrote around `command`, beside a perf that
    records nothing."""
    (tmp_path / "perf").write_text(PERF)
    (tmp_path / "perf").chmod(0o755)
    (tmp_path / "table").write_text(HEAD)
    env = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "at": str(tmp_path),
        "sb_out": str(tmp_path / "out"),
    }
    done = subprocess.run([RUN, *command], env=env, timeout=60, check=False)
    return done.returncode, (tmp_path / "out").read_text()


def test_a_short_command_ends_the_recording_and_its_status_is_kept(tmp_path: Path) -> None:
    status, text = watched(tmp_path, "sh", "-c", "sleep 0.5; exit 3")
    seconds = float(text.split()[1])
    assert status == 3
    assert 0.4 <= seconds < 1.5
    assert text.splitlines()[0].endswith(f"on {os.cpu_count()} CPUs")
    assert "contended" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "out", "perf", "table"]


def test_a_long_command_is_recorded_for_two_seconds(tmp_path: Path) -> None:
    status, text = watched(tmp_path, "sleep", "3.5")
    assert status == 0
    assert 1.9 <= float(text.split()[1]) < 3
