"""Where the embedded service starts and stops processes."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

import psutil

# Marks every process of one embedded service, by the path of its state directory; executors of attempts drop the mark.
INSTANCE_VARIABLE: Final = "SWINGBOT_INSTANCE"
_PR_SET_PDEATHSIG: Final = 1

Child = subprocess.Popen[bytes]
TimedOut = subprocess.TimeoutExpired


def start(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> Child:
    """Start a process in a session of its own that gets SIGTERM when we die, even by SIGKILL."""
    libc = ctypes.CDLL(None)

    def tie_to_us() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    with log.open("ab") as sink:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=tie_to_us,
        )


def answer(argv: Sequence[str], *, timeout: float) -> tuple[int, str, str]:
    """Run a program of ours to its end: (status, what it printed, what it complained). Raises OSError, and TimedOut after `timeout` s."""
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
    )
    return (
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


def become(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> NoReturn:
    """Run another program in our place: it has our process id, our output and the signals that a process manager sends."""
    os.chdir(cwd)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(argv[0], list(argv), dict(env))


def members(instance: Path) -> list[psutil.Process]:
    """The processes that carry the mark of this instance, ourselves excepted."""
    found = []
    for candidate in psutil.process_iter():
        try:
            if (
                candidate.pid != os.getpid()
                and candidate.environ().get(INSTANCE_VARIABLE) == str(instance)
                and candidate.status() != psutil.STATUS_ZOMBIE
            ):
                found.append(candidate)
        except psutil.Error:
            continue  # gone meanwhile, or somebody else's
    return found


def stop_members(instance: Path, polite_seconds: float) -> int:
    """End whatever still runs for this instance: its supervisor first and politely, as it stops the others in order. Says how many there were."""
    left = members(instance)
    count = len(left)
    if not left:
        return 0
    supervisors = [one for one in left if _is_supervisor(one)]
    _signal(supervisors or left, signal.SIGTERM)
    end = time.monotonic() + polite_seconds
    while left and time.monotonic() < end:
        time.sleep(0.1)
        left = members(instance)
        if left and not any(_is_supervisor(one) for one in left):
            _signal(left, signal.SIGTERM)
    _signal(left, signal.SIGKILL)
    psutil.wait_procs(left, timeout=5)
    return count


def _is_supervisor(candidate: psutil.Process) -> bool:
    try:
        return any("supervisord" in part for part in candidate.cmdline())
    except psutil.Error:
        return False


def _signal(processes: Sequence[psutil.Process], number: int) -> None:
    for one in processes:
        try:
            one.send_signal(number)
        except psutil.Error:
            continue
