"""Heartbeats of the parts of the service: a small file each, written from the main event loop.

A part that is stopped or stuck stops writing. A part that ends in order removes its file; one that
was killed leaves it, and is reported until it writes again. Under systemd the same beat answers the
watchdog (sd_notify(3)).
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from swingbot.adapters import limits, progress
from swingbot.core.keep.health import PartBeat
from swingbot_jobs.contract.heartbeat import BEAT_SECONDS, FILE, Beat, decode, encode

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Id of this boot of the host; `-` if unknown."""
    try:
        return _BOOT_ID.read_text().strip() or "-"
    except OSError:
        return "-"


def directory(state: Path) -> Path:
    return state / "heartbeats"


class PartHeartbeat:
    """Writes the heartbeat of `part`; never raises.

    `reporter` is the part that writes on behalf of another one, which cannot write itself.
    """

    def __init__(self, state: Path, part: str, reporter: str | None = None) -> None:
        self._file = directory(state) / part
        self._reporter, self._boot_id = reporter, boot_id()
        self._descriptor: int | None = None
        self._ready = False
        # not for child processes, whose messages systemd would only log
        self._manager = os.environ.pop("NOTIFY_SOCKET", "") if reporter is None else ""

    def beat(self, pid: int | None = None) -> None:
        began, step = progress.round_now() if self._reporter is None else (0.0, None)
        line = encode(
            Beat(
                monotonic=time.monotonic(),
                pid=pid or os.getpid(),
                boot_id=self._boot_id,
                reporter=self._reporter,
                began=began,
                step=step,
            )
        )
        with suppress(OSError):
            if self._descriptor is None or not self._file.exists():
                self._open()
            if self._descriptor is not None:
                os.pwrite(self._descriptor, line, 0)
        notify_systemd(self._manager, "WATCHDOG=1" if self._ready else "READY=1\nWATCHDOG=1")
        self._ready = True

    def _open(self) -> None:
        self._close()
        self._file.parent.mkdir(mode=0o755, exist_ok=True)
        self._descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def end(self) -> None:
        """Remove the file: this part ends in order."""
        with suppress(OSError):
            self._close()
            self._file.unlink(missing_ok=True)


def notify_systemd(address: str, message: str) -> None:
    """Send `message` to systemd's notification socket at `address`; empty: there is none."""
    if not address.startswith(("/", "@")):
        return
    with (
        suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
    ):
        sender.setblocking(False)
        sender.sendto(message.encode(), address.replace("@", "\0", 1))


async def beat_forever(heart: PartHeartbeat) -> None:
    """Beat from an asyncio event loop until cancelled."""
    try:
        while True:
            heart.beat()
            await asyncio.sleep(BEAT_SECONDS)
    finally:
        heart.end()


@contextmanager
def beating(heart: PartHeartbeat, stalled: Callable[[], bool]) -> Iterator[None]:
    """Beat from a thread while the main thread works, except while it is `stalled`.

    For a process without an event loop. A stopped process stops all its threads.
    """
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            if not stalled():
                heart.beat()
            over.wait(BEAT_SECONDS)

    thread = threading.Thread(target=run, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        heart.end()


def beats(state: Path) -> list[PartBeat]:
    """The last heartbeats of all parts on this host, by name. Never raises."""
    files: list[tuple[str, Path]] = []
    with suppress(OSError):
        files += [(file.name, file) for file in directory(state).iterdir()]
    with suppress(OSError):
        files += [(f"worker-{place.name}", place / FILE) for place in (state / "workers").iterdir()]
    now, this_boot = time.monotonic(), boot_id()
    read = (_read(part, file, now, this_boot) for part, file in sorted(files))
    return [beat for beat in read if beat is not None]


def _read(part: str, file: Path, now: float, this_boot: str) -> PartBeat | None:
    try:
        with file.open("rb") as source:
            beat = decode(source.read(limits.HEARTBEAT_BYTES))
            modified = os.fstat(source.fileno()).st_mtime
    except (OSError, ValueError):
        return None  # no heartbeat, or one that is just being created
    same_boot = beat.boot_id == this_boot
    age = now - beat.monotonic if same_boot else time.time() - modified
    return PartBeat(
        part=part,
        age_seconds=max(0.0, age),
        pid=beat.pid if same_boot else None,
        reporter=beat.reporter,
        step=beat.step,
        round_seconds=max(0.0, beat.monotonic - beat.began) if beat.step else 0.0,
    )


def forget(state: Path) -> None:
    """Remove all heartbeats; for a start of the whole service."""
    for beat in beats(state):
        drop(state, beat.part)


def drop(state: Path, part: str) -> None:
    """Remove the heartbeat of `part`, which was killed and starts again."""
    for file in (directory(state) / part, state / "workers" / part.removeprefix("worker-") / FILE):
        with suppress(OSError):
            file.unlink()
