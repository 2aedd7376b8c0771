"""Start and stop the processes of the embedded service."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

import psutil

from swingbot.app.held_signals import signals_held

# Set to the state directory for every process of an embedded service; executors unset it.
INSTANCE_VARIABLE: Final = "SWINGBOT_INSTANCE"
_PR_SET_PDEATHSIG: Final = 1

Child = subprocess.Popen[bytes]
TimedOut = subprocess.TimeoutExpired


def start(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path) -> Child:
    """Start a process in its own session; the kernel sends it SIGTERM when this process dies."""
    libc = ctypes.CDLL(None)

    def die_with_parent() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    with log.open("ab") as sink, signals_held():
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )


def answer(
    argv: Sequence[str], *, timeout: float, env: Mapping[str, str] | None = None
) -> tuple[int, str, str]:
    """Run a program to completion, with our environment if `env` is None; return (exit status,
    stdout, stderr).

    Raises OSError, and TimedOut after `timeout` seconds.
    """
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, env=env, check=False
    )
    return (
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


def abort(pid: int, seconds: float) -> None:
    """Kill a process. SIGABRT comes first: a Python program writes where its threads are."""
    with suppress(psutil.Error):
        one = psutil.Process(pid)
        one.send_signal(signal.SIGABRT)
        one.send_signal(signal.SIGCONT)
        try:
            one.wait(seconds)
        except psutil.TimeoutExpired:
            one.kill()


def kill_tree(pid: int) -> None:
    """Kill a process and all its descendants, even in sessions of their own."""
    with suppress(psutil.Error):
        one = psutil.Process(pid)
        _signal([one, *one.children(recursive=True)], signal.SIGKILL)


def become(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path) -> NoReturn:
    """Exec another program, found in the PATH of `env`: it keeps the process id and output, and
    gets the manager's signals.
    """
    os.chdir(cwd)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(argv[0], list(argv), dict(env))


def members(instance: Path) -> list[psutil.Process]:
    """Processes of this instance, except the current one."""
    processes = []
    for candidate in psutil.process_iter():
        try:
            if (
                candidate.pid != os.getpid()
                and candidate.environ().get(INSTANCE_VARIABLE) == str(instance)
                and candidate.status() != psutil.STATUS_ZOMBIE
            ):
                processes.append(candidate)
        except psutil.Error:
            continue  # already gone, or owned by another user
    return processes


def stop_members(instance: Path, polite_seconds: float) -> int:
    """Stop all processes of this instance; return their number.

    The supervisor gets SIGTERM first, because it stops the others in order. Processes that remain
    after `polite_seconds` are killed.
    """
    running = members(instance)
    count = len(running)
    if not running:
        return 0
    supervisors = [one for one in running if _is_supervisor(one)]
    _signal(supervisors or running, signal.SIGTERM)
    end = time.monotonic() + polite_seconds
    while running and time.monotonic() < end:
        time.sleep(0.1)
        running = members(instance)
        if running and not any(_is_supervisor(one) for one in running):
            _signal(running, signal.SIGTERM)
    _signal(running, signal.SIGKILL)
    psutil.wait_procs(running, timeout=5)
    return count


def kill_executors(instance: Path) -> int:
    """Kill the executors of the instance's workers, which outlive it; return their number. The
    parent-death signal ends what they run.
    """
    state = str(instance.resolve())
    running = [
        one
        for one in psutil.process_iter(["cmdline"])
        if (words := one.info["cmdline"] or [])[1:3] == ["-m", "swingbot_worker.executor"]
        and len(words) > 3
        and Path(words[3]).resolve().is_relative_to(state)
    ]
    _signal(running, signal.SIGKILL)
    psutil.wait_procs(running, timeout=5)
    return len(running)


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
