"""The only module of the worker that starts processes.

Commands are argument lists rather than shell strings. Each has a time limit, a process group of its
own and a log that is always kept. A child gets SIGTERM when this process dies, even by SIGKILL, so
that no compiler or virtual machine is left behind.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from swingbot_jobs.process_limits import ProcessLimits
from swingbot_worker import InfraError, limits

# Seconds between SIGTERM and SIGKILL, in which make removes half-written targets and git its lock
# files.
GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedCommand:
    """Exit of a command. `rc` is negative if a signal ended it, as in `subprocess`."""

    rc: int
    seconds: float
    timed_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(CompletedCommand):
    """Exit of a command, and its output to stdout and stderr together."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Start parameters of a command.

    `env` replaces the environment (None: inherit it); `stdout` is a descriptor for its output,
    instead of a log.
    """

    cwd: Path | None = None
    env: Mapping[str, str] | None = None
    stdin: bytes | None = None
    pass_fds: Sequence[int] = ()
    stdout: int | None = None


_PLAIN = Start()


def run(
    argv: Sequence[str | Path],
    *,
    timeout: float,
    log: Path | None = None,
    start: Start = _PLAIN,
    watch: Callable[[float], None] | None = None,
    watch_seconds: float = 1.0,
) -> CompletedCommand:
    """Run `argv` for at most `timeout` seconds.

    stdout and stderr are appended to `log` (None: discarded).

    `watch` is called about every `watch_seconds` with the elapsed seconds. When the command exits,
    times out or an exception passes through, its whole process group is killed. Raises InfraError
    if the program is not installed.
    """
    with open(log or os.devnull, "ab") as sink:
        return _run(argv, sink, timeout, start, watch, watch_seconds)


def output(
    argv: Sequence[str | Path],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes | None = None,
    within: ProcessLimits | None = None,
) -> Output:
    """Run a command with short output and return that output.

    It includes stderr, and invalid UTF-8 is replaced.
    """
    if within is not None:
        argv = within.around([str(part) for part in argv], timeout)
    with tempfile.TemporaryFile() as sink:
        done = _run(argv, sink, timeout, Start(cwd=cwd, env=env, stdin=stdin), None, 1.0)
        sink.seek(0)
        text = sink.read(limits.OUTPUT_BYTES).decode(errors="replace")
    return Output(rc=done.rc, seconds=done.seconds, timed_out=done.timed_out, text=text)


def _run(
    argv: Sequence[str | Path],
    sink: IO[bytes],
    timeout: float,
    start: Start,
    watch: Callable[[float], None] | None,
    watch_seconds: float,
) -> CompletedCommand:
    started = time.monotonic()
    with _stdin(start.stdin) as source:
        child = subprocess.Popen(
            tied_to_us([str(part) for part in argv], start.env),
            stdin=source,
            stdout=sink if start.stdout is None else start.stdout,
            stderr=subprocess.STDOUT,
            cwd=start.cwd,
            env=start.env,
            pass_fds=tuple(start.pass_fds),
            start_new_session=True,
        )
    timed_out = True
    try:
        timed_out = not _wait(child.pid, started, timeout, watch, watch_seconds)
    finally:
        _end_group(child, politely=timed_out)
    return CompletedCommand(
        rc=child.returncode, seconds=time.monotonic() - started, timed_out=timed_out
    )


def processor_seconds() -> float:
    """Return the processor time of this process's descendants in seconds, past and present."""
    ticks: dict[int, tuple[int, int]] = {}  # parent, and own time with that of its past children
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has just exited
            fields = Path("/proc", name, "stat").read_bytes().rpartition(b") ")[2].split()
            ticks[int(name)] = int(fields[1]), sum(map(int, fields[11:15]))
    ours = {os.getpid(): True}

    def is_ours(pid: int) -> bool:
        if pid not in ours:
            ours[pid] = pid in ticks and is_ours(ticks[pid][0])
        return ours[pid]

    live = sum(time for pid, (_, time) in ticks.items() if pid != os.getpid() and is_ours(pid))
    return live / os.sysconf("SC_CLK_TCK") + past_processor_seconds()


def past_processor_seconds() -> float:
    """Return the processor time of this process's children that have ended, in seconds."""
    times = os.times()
    return times.children_user + times.children_system


def tied_to_us(argv: Sequence[str], env: Mapping[str, str] | None = None) -> list[str]:
    """Return an argument list that starts `argv` and ends it when this process dies.

    Raises InfraError if the program is not installed.
    """
    path = (os.environ if env is None else env).get("PATH")
    program = shutil.which(argv[0], path=path)
    if program is None:
        raise InfraError(f"The program {argv[0]} is not on this worker; install it.")
    # setpriv is part of util-linux, which every Debian has.
    return ["/usr/bin/setpriv", "--pdeathsig", "TERM", "--", program, *argv[1:]]


@contextlib.contextmanager
def _stdin(data: bytes | None) -> Iterator[IO[bytes] | int]:
    if data is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as source:  # a file, not a pipe: no thread has to feed it
        source.write(data)
        source.seek(0)
        yield source


def _wait(
    pid: int,
    started: float,
    timeout: float,
    watch: Callable[[float], None] | None,
    watch_seconds: float,
) -> bool:
    """Wait until `pid` has exited (True) or the timeout has expired (False); does not reap it."""
    pidfd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        while (remaining := started + timeout - time.monotonic()) > 0:
            pause = remaining if watch is None else min(remaining, watch_seconds)
            if poll.poll(pause * 1000):
                return True
            if watch is not None:
                watch(time.monotonic() - started)
        return bool(poll.poll(0))
    finally:
        os.close(pidfd)


def _end_group(child: subprocess.Popen[bytes], *, politely: bool) -> None:
    """Kill the remaining processes of the child's process group.

    The child has not been reaped yet, so its group id cannot have been reused.
    """
    if politely:
        os.killpg(child.pid, signal.SIGTERM)
        _wait(child.pid, time.monotonic(), GRACE_SECONDS, None, 1.0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
