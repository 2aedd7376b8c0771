"""The heartbeat of a worker: a file in its state directory, and the answer to systemd's watchdog.

Its event loop writes it. Builds and boots run in processes of their own, so however long they take,
a worker that works on them has a heartbeat.
"""

from __future__ import annotations

import os
import socket
import time
from contextlib import suppress
from pathlib import Path

from swingbot_jobs.contract.heartbeat import FILE, Beat, encode


class WorkerHeartbeat:
    """Writes the heartbeat of the worker whose directory is `state`; never raises."""

    def __init__(self, state: Path) -> None:
        self._file = state / FILE
        self._ready = False
        # not for builds and boots, whose messages systemd would only log
        self._manager = os.environ.pop("NOTIFY_SOCKET", "")
        try:
            self._boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            self._boot_id = ""

    def beat(self) -> None:
        line = encode(Beat(monotonic=time.monotonic(), pid=os.getpid(), boot_id=self._boot_id))
        with suppress(OSError):
            # an existing line is overwritten in place, so that this works on a full disk
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.pwrite(descriptor, line, 0)
            finally:
                os.close(descriptor)
        _notify_systemd(self._manager, "WATCHDOG=1" if self._ready else "READY=1\nWATCHDOG=1")
        self._ready = True

    def end(self) -> None:
        """Remove the file: the worker ends in order."""
        with suppress(OSError):
            self._file.unlink()


def _notify_systemd(address: str, message: str) -> None:
    """Protocol: sd_notify(3)."""
    if not address.startswith(("/", "@")):
        return
    with (
        suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
    ):
        sender.setblocking(False)
        sender.sendto(message.encode(), address.replace("@", "\0", 1))
