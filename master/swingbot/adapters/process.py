"""Start processes of the master: argument lists, a process group of their own, limits.

What reads or writes something that a stranger sent runs with `ProcessLimits`. Out of memory, the
host ends such a process before PostgreSQL and the service.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from swingbot.adapters import progress
from swingbot_jobs.process_limits import FIRST_OUT_OF_MEMORY, ProcessLimits

ENDING_SECONDS = 30.0  # for the end of a killed process group
TIMED_OUT: Final = 124
# Times a process's limit of processor time in which it must end, though others use the processors.
PATIENCE: Final = 4.0
_PAUSE_SECONDS: Final = (0.0005, 0.05)  # between two looks at a process: the first, the longest
_ERROR_BYTES: Final = 64 << 10
_NO_MEMORY: Final = re.compile("out of memory|cannot allocate memory", re.IGNORECASE)

_stopped: ContextVar[Callable[[], bool]] = ContextVar("stopped", default=lambda: False)
_of_processes = threading.local()


class Stopped(Exception):
    """Nobody waits for the result of the process any more, so it was ended."""


@dataclass(frozen=True, slots=True)
class Completed:
    """Result of a process; `rc` is TIMED_OUT if it exceeded the time limit."""

    rc: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode(errors="replace")

    @property
    def timed_out(self) -> bool:
        """True: it may have waited for others, and would end in time if it were run again."""
        return self.rc == TIMED_OUT

    def exceeded(self, given: ProcessLimits) -> str | None:
        """Return which limit ended the process; None if none did."""
        ended_by = self.rc - 128 if self.rc > 128 else -self.rc
        if ended_by == signal.SIGXFSZ or "File too large" in self.err:
            return f"it writes more than {given.file_bytes >> 20} MiB"
        if self.timed_out:
            return "it takes too long"
        if ended_by == signal.SIGXCPU:
            return "it needs too much processor time"
        if self.rc != 0 and _NO_MEMORY.search(self.err):
            return f"it needs more than {given.memory_bytes >> 20} MiB of memory"
        return None


class Child:
    """A process that serves requests on its standard input, a socket, until it is closed.

    It limits itself.
    """

    def __init__(self, argv: Sequence[str], *, stdin: int, env: Mapping[str, str]) -> None:
        self._popen = subprocess.Popen(
            [*FIRST_OUT_OF_MEMORY, *argv],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            cwd="/",
            env=env,
            start_new_session=True,
        )

        self._counted = 0.0  # processor seconds

    def ended(self, seconds: float = 0.0) -> int | None:
        """Return the exit status, negative for a signal; None if it runs after `seconds`."""
        end = time.monotonic() + seconds
        while not self._reap(os.WNOHANG) and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _PAUSE_SECONDS[1]))
        return self._popen.returncode

    def count(self) -> None:
        """Count for this thread the processor time that the child took since the last count."""
        if self._popen.returncode is None:  # it may have ended, and waits to be reaped
            self._count(time.clock_gettime(_clock_of(self._popen.pid)))

    def end(self) -> None:
        """Kill it and what it started."""
        if not self._reap(os.WNOHANG):
            os.killpg(self._popen.pid, signal.SIGKILL)
            self._reap()

    def _reap(self, options: int = 0) -> bool:
        """Wait for it; return whether it has ended. Its last processor time is counted."""
        if self._popen.returncode is None and (taken := _reaped(self._popen, options)) is not None:
            self._count(taken)
        return self._popen.returncode is not None

    def _count(self, taken: float) -> None:
        count(max(0.0, taken - self._counted))
        self._counted = max(self._counted, taken)


@contextmanager
def stopping(when: Callable[[], bool]) -> Iterator[None]:
    """End processes that this thread starts in the block once `when` says so; they raise
    Stopped.
    """
    token = _stopped.set(when)
    try:
        yield
    finally:
        _stopped.reset(token)


def check_stopped() -> None:
    """Raise Stopped if the result is no longer wanted."""
    if _stopped.get()():
        raise Stopped


def piped(argv: Sequence[str], into: Sequence[str]) -> list[str]:
    """Return the command line of a pipe from `argv` to `into`, which fails if either does."""
    pipe = 'n=$1; shift; "${@:1:n}" | "${@:n+1}"'
    return ["bash", "-o", "pipefail", "-c", pipe, "bash", str(len(argv)), *argv, *into]


def seconds() -> float:
    """Processor seconds that this thread took, with those that were counted for it: of the
    processes that it ran and, in the web service, of its database connections.
    """
    return time.thread_time() + float(getattr(_of_processes, "seconds", 0.0))


def count(taken: float) -> None:
    """Count processor seconds that something else took for this thread."""
    _of_processes.seconds = getattr(_of_processes, "seconds", 0.0) + taken


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    within: ProcessLimits | None = None,
) -> Completed:
    """Run `argv` and capture both outputs; on a time-out the whole process group is killed."""
    with (
        progress.waiting(timeout + ENDING_SECONDS),
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin)
        given.seek(0)
        child = subprocess.Popen(
            argv if within is None else within.around(argv, timeout),
            stdin=given,
            stdout=out,
            stderr=err,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
        try:
            timed_out = _timed_out(child, timeout)
        except BaseException:
            _kill(child)
            raise
        said = _read(err, _ERROR_BYTES).decode(errors="replace")
        if timed_out:
            return Completed(TIMED_OUT, _read(out), f"{said}\nkilled after {timeout:.0f} s")
        return Completed(child.returncode, _read(out), said)


def _timed_out(child: subprocess.Popen[bytes], timeout: float) -> bool:
    """Wait for the end of `child`; return whether it had to be killed. Raises Stopped."""
    end, (pause, longest) = time.monotonic() + timeout, _PAUSE_SECONDS
    while not _ended(child, os.WNOHANG):
        if (left := end - time.monotonic()) <= 0:
            _kill(child)
            return True
        check_stopped()
        pause = min(2 * pause, longest)
        time.sleep(min(pause, left))
    return False


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.returncode is None:
        os.killpg(child.pid, signal.SIGKILL)
        _ended(child)


def _ended(child: subprocess.Popen[bytes], options: int = 0) -> bool:
    """Wait for `child`, and count its processor time for this thread when it has ended."""
    taken = _reaped(child, options)
    count(taken or 0.0)
    return taken is not None


def _reaped(child: subprocess.Popen[bytes], options: int) -> float | None:
    """Wait for `child`; return its processor seconds when it has ended."""
    pid, status, usage = os.wait4(child.pid, options)
    if not pid:
        return None
    child.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


def _clock_of(pid: int) -> int:
    """The clock of the processor time of a process, as clock_getcpuclockid(3)."""
    return (~pid << 3) | 2


def _read(file: IO[bytes], most: int = -1) -> bytes:
    file.seek(0)
    return file.read(most)
