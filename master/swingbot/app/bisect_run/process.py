"""Start CMD in its own session with output to files, and kill it with all its children."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from swingbot.app.held_signals import signals_held

MARK: Final = "SWINGBOT_BISECT_RUN"  # environment variable of CMD: state directory of its bisection
_PR_SET_PDEATHSIG: Final = 1
_LEFTOVER_SECONDS: Final = 5.0  # a killed process may still be writing to a slow disk

Child = subprocess.Popen[bytes]


def start(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None, out: Path, err: Path
) -> Child:
    """Start CMD; the kernel sends it SIGKILL when this process dies.

    A script without `#!` is run by sh, as in a shell. Raises OSError.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def die_with_parent() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def begin(argv_: Sequence[str]) -> Child:
        with out.open("wb") as to_out, err.open("wb") as to_err, signals_held():
            return subprocess.Popen(
                argv_,
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    try:
        return begin(argv)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return begin(["/bin/sh", *argv])


def become(argv: Sequence[str]) -> NoReturn:
    """Replace this process by `argv`. Raises OSError."""
    os.execv(argv[0], list(argv))


def end(child: Child) -> None:
    """Kill CMD's process group; background processes would disturb the next boot."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def end_leftovers(state: Path) -> int:
    """Kill processes that an earlier, killed invocation left running; return their number.

    `state` is the state directory of the bisection. Without /proc nothing is killed.
    """
    proc, mark = Path("/proc"), f"{MARK}={state}".encode()
    pids = (
        [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()]
        if proc.is_dir()
        else []
    )
    killed = [
        handle
        for pid in pids
        if pid != os.getpid() and (handle := _kill_marked(pid, mark)) is not None
    ]
    deadline = time.monotonic() + _LEFTOVER_SECONDS
    for handle in killed:
        select.select([handle], [], [], max(0.0, deadline - time.monotonic()))
        os.close(handle)
    return len(killed)


def _kill_marked(pid: int, mark: bytes) -> int | None:
    """Kill a process with `mark` in its environment; return its pidfd, else None."""
    try:
        # Opened before the check, because the PID may be reused afterwards.
        handle = os.pidfd_open(pid)
    except OSError:
        return None  # already gone
    try:
        if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return handle
    except OSError:
        pass  # already gone, or owned by another user
    os.close(handle)
    return None
