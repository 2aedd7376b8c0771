"""Start processes of the master: argument lists, a process group of their own, a time limit."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swingbot.adapters import progress

ENDING_SECONDS = 30.0  # for the end of a killed process group


@dataclass(frozen=True, slots=True)
class Completed:
    """Result of a process; `rc` is 124 if it exceeded the time limit."""

    rc: int
    out: str
    err: str


class Child:
    """A process that serves requests on its standard input, a socket, until it is closed."""

    def __init__(self, argv: Sequence[str], *, stdin: int, env: Mapping[str, str]) -> None:
        self._popen = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            cwd="/",
            env=env,
            start_new_session=True,
        )

    def ended(self, seconds: float = 0.0) -> int | None:
        """Return the exit status, negative for a signal; None if it runs after `seconds`."""
        try:
            return self._popen.wait(seconds) if seconds else self._popen.poll()
        except subprocess.TimeoutExpired:
            return None

    def end(self) -> None:
        """Kill it and what it started."""
        if self._popen.poll() is None:
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._popen.wait()


def run(
    argv: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
) -> Completed:
    """Run `argv` and capture both outputs; on a time-out the whole process group is killed."""
    with (
        progress.waiting(timeout + ENDING_SECONDS),
        subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=env,
            start_new_session=True,
        ) as child,
    ):
        try:
            out, err = child.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            return Completed(
                124,
                out.decode(errors="replace"),
                err.decode(errors="replace") + f"\nkilled after {timeout:.0f} s",
            )
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
    return Completed(child.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
