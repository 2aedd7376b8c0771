"""Exclusive locks across processes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from swingbot_worker import InfraError

POLL_SECONDS = 0.1


@contextlib.contextmanager
def locked(
    path: Path, timeout: float, waiting: Callable[[str], None] | None = None
) -> Iterator[int]:
    """Hold the lock file `path` and yield its descriptor.

    Raises InfraError if another process holds it for `timeout` seconds.

    The kernel releases the lock when the last process with the descriptor exits. Pass it to child
    processes: then the lock of a killed build is released when its last compiler has exited.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(descriptor, path, timeout, waiting)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(
    descriptor: int, path: Path, timeout: float, waiting: Callable[[str], None] | None
) -> None:
    started = time.monotonic()
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
        if time.monotonic() - started > timeout:
            raise InfraError(
                f"{path} has been held by process {holder} for more than {timeout:.0f} s; check "
                "that process, and end it if it hangs."
            )
        if waiting is not None:
            waiting(f"waiting for process {holder}, which is building in the same work tree")
            waiting = None
        time.sleep(POLL_SECONDS)
