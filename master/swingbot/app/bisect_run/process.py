"""Where CMD is started: in a session of its own, its output in files, ended together with all that it started."""

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
from typing import Final

MARK: Final = "SWINGBOT_BISECT_RUN"  # in CMD's environment: the state directory of the bisection that started it
_PR_SET_PDEATHSIG: Final = 1
_LEFTOVER_SECONDS: Final = 5.0  # what is killed may be writing to a slow disk

Child = subprocess.Popen[bytes]


def start(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path | None, out: Path, err: Path
) -> Child:
    """Start CMD; it gets SIGKILL when we die, even by SIGKILL. A script without `#!` is given to sh, as a shell would. Raises OSError."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def tie_to_us() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    def begin(words: Sequence[str]) -> Child:
        with out.open("wb") as to_out, err.open("wb") as to_err:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                env=dict(env),
                cwd=cwd,
                start_new_session=True,
                preexec_fn=tie_to_us,
            )

    try:
        return begin(argv)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return begin(["/bin/sh", *argv])


def end(child: Child) -> None:
    """Kill what is left of CMD's process group: what goes on in the background would disturb the next boot."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def end_leftovers(state: Path) -> int:
    """End what an earlier, killed call started for the bisection kept in `state`; says how many processes.

    Looks in /proc: where there is none, nothing is ended.
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
    end = time.monotonic() + _LEFTOVER_SECONDS
    for handle in killed:
        select.select([handle], [], [], max(0.0, end - time.monotonic()))
        os.close(handle)
    return len(killed)


def _kill_marked(pid: int, mark: bytes) -> int | None:
    """Kill a process that has `mark` in its environment; a descriptor that is readable once it has ended."""
    try:
        # opened before the look: the number may be another process's afterwards
        handle = os.pidfd_open(pid)
    except OSError:
        return None  # gone meanwhile
    try:
        if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return handle
    except OSError:
        pass  # gone meanwhile, or somebody else's
    os.close(handle)
    return None
