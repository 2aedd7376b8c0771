"""Limits of processes that work on what strangers sent, started by the master or by a worker."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from swingbot.adapters import process as of_master
from swingbot_jobs.process_limits import ProcessLimits
from swingbot_worker import process as of_worker

LIMITS = ProcessLimits(memory_bytes=128 << 20, file_bytes=1 << 20)
Run = Callable[[Sequence[str], float], tuple[int, str]]


def by_master(argv: Sequence[str], seconds: float) -> tuple[int, str]:
    done = of_master.run(argv, timeout=seconds, within=LIMITS)
    return done.rc, done.out + done.err


def by_worker(argv: Sequence[str], seconds: float) -> tuple[int, str]:
    done = of_worker.output(argv, timeout=seconds, within=LIMITS)
    return done.rc, done.text


@pytest.fixture(params=[by_master, by_worker])
def run(request: pytest.FixtureRequest) -> Run:
    runner: Run = request.param
    return runner


def python(text: str) -> list[str]:
    return [sys.executable, "-S", "-c", text]


def test_memory_has_a_limit_and_files_that_are_read_do_not_count(run: Run, tmp_path: Path) -> None:
    status, said = run(python("x = bytearray(200 << 20)"), 60.0)
    assert status != 0 and "MemoryError" in said
    large = tmp_path / "pack"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    maps = (
        f"import mmap; file = open({str(large)!r}, 'rb');"
        " mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)"
    )
    assert run(python(maps), 60.0) == (0, "")


def test_each_file_has_a_limit_the_output_too(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for argv in (["cp", "/dev/zero", str(out)], ["cat", "/dev/zero"]):
        status, _ = run(argv, 60.0)
        assert status != 0
    assert out.stat().st_size == LIMITS.file_bytes


@pytest.mark.parametrize("options", [(), ("-S",), ("-S", "-E", "-s")])
def test_both_commands_of_a_pipe_have_their_own_words_and_the_limits(
    options: tuple[str, ...],
) -> None:
    given = ["", "two words", "*", "$HOME", "|", "-n"]
    first = [sys.executable, *options, "-c", "import sys; print(sys.argv[1:])", *given]
    second = [sys.executable, "-c", "import sys; print(sys.argv[1:], sys.stdin.read())", "x", ""]
    done = of_master.run(of_master.piped(first, second), timeout=60.0, within=LIMITS)
    assert (done.rc, done.out.strip()) == (0, f"['x', ''] {given}")
    greedy, reader = python("x = bytearray(200 << 20)"), python("import sys; sys.stdin.read()")
    for argv, into in ((greedy, reader), (reader, greedy)):
        done = of_master.run(of_master.piped(argv, into), timeout=60.0, within=LIMITS)
        assert done.rc != 0 and "MemoryError" in done.err


@pytest.mark.parametrize("timeout", [1.0, 600.0])
def test_processor_time_has_a_limit_of_its_own_which_is_named(timeout: float) -> None:
    limits = replace(LIMITS, seconds=1.0) if timeout > 1.0 else LIMITS
    busy = limits.around(python("while True: pass"), timeout)
    done = of_master.run(busy, timeout=600.0)  # nobody waits
    assert done.exceeded(limits) == "it needs too much processor time" and not done.timed_out


def test_a_process_that_waits_too_long_used_no_processor_time() -> None:
    done = of_master.run(["sleep", "600"], timeout=0.2, within=LIMITS)
    assert done.timed_out and done.exceeded(LIMITS) == "it takes too long"


def test_out_of_memory_the_host_ends_it_first(run: Run) -> None:
    assert run(["cat", "/proc/self/oom_score_adj"], 60.0) == (0, "1000\n")


def test_a_process_is_ended_when_its_result_is_no_longer_wanted() -> None:
    asked: list[int] = []

    def left() -> bool:
        asked.append(1)
        return len(asked) > 1

    with of_master.stopping(left), pytest.raises(of_master.Stopped):
        of_master.run(["sleep", "600"], timeout=600.0)
    assert of_master.run(["true"], timeout=60.0).rc == 0


def test_a_process_that_reads_late_gets_its_whole_input() -> None:
    late = python("import sys, time; time.sleep(1); print(len(sys.stdin.buffer.read()))")
    done = of_master.run(late, timeout=60.0, stdin=bytes(1 << 20))
    assert (done.rc, done.out) == (0, f"{1 << 20}\n")
