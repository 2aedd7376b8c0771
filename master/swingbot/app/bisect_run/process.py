"""Where CMD is started: in a session of its own, its output in files, ended together with all that it started."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

MARK: Final = "SWINGBOT_BISECT_RUN"  # in CMD's environment: the state directory of the bisection that started it
_PR_SET_PDEATHSIG: Final = 1

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
    """End what an earlier, killed call started for the bisection kept in `state`; says how many processes."""
    found = []
    for candidate in psutil.process_iter():
        try:
            if candidate.pid != os.getpid() and candidate.environ().get(MARK) == str(state):
                candidate.kill()
                found.append(candidate)
        except psutil.Error:
            continue  # gone meanwhile, or somebody else's
    psutil.wait_procs(found, timeout=5)
    return len(found)
