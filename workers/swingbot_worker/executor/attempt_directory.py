"""The directory of one attempt on a worker: its executor, its results and their delivery.

    <state>/attempts/a12/
        lock           held (flock) by the executor while it lives; no lock means no executor
        order.json     with the attempt's token: readable only by the owner
        started        the work has started; it is never started twice
        out/           the result files
        outcome.json   the work has ended; written atomically
        delivered      the service has the outcome (or there is no service to deliver to)
        executor.log   progress, one line per message

These files are the whole state, so that any process can die at any line and the next one can
continue.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker.outcome import Outcome

KEEP_DELIVERED_SECONDS = 24 * 3600.0
KEEP_UNDELIVERED_SECONDS = 7 * 24 * 3600.0  # the master has started another attempt long before


@dataclass(frozen=True, slots=True)
class AttemptDirectory:
    """Paths of one attempt's directory."""

    root: Path

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def order(self) -> Path:
        return self.root / "order.json"

    @property
    def started(self) -> Path:
        return self.root / "started"

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def outcome(self) -> Path:
        return self.root / "outcome.json"

    @property
    def delivered(self) -> Path:
        return self.root / "delivered"

    @property
    def log(self) -> Path:
        return self.root / "executor.log"

    def try_lock(self) -> int | None:
        """Return a descriptor that holds the lock, or None while an executor lives.

        The caller closes it or passes it to an executor.
        """
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor


def attempts(state: Path) -> Path:
    return state / "attempts"


def open_place(state: Path, attempt: str) -> AttemptDirectory:
    """Return the directory of `attempt` ("a12"); create it if it does not exist."""
    place = AttemptDirectory(attempts(state) / attempt)
    place.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """Write `text` to `file` atomically and sync it to disk."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_outcome(place: AttemptDirectory, outcome: Outcome) -> None:
    write(place.outcome, json.dumps(outcome, indent=2, sort_keys=True) + "\n")


def prune(state: Path, now: float | None = None) -> list[str]:
    """Delete attempts delivered more than a day ago or undelivered for a week.

    Returns their names.
    """
    now = time.time() if now is None else now
    deleted = []
    for root in sorted(attempts(state).glob("a*")):
        place = AttemptDirectory(root)
        delivered = _age(place.delivered, now)
        if (delivered or 0.0) > KEEP_DELIVERED_SECONDS or (
            delivered is None and (_age(root, now) or 0.0) > KEEP_UNDELIVERED_SECONDS
        ):
            lock = place.try_lock()
            if lock is not None:
                shutil.rmtree(root, ignore_errors=True)
                os.close(lock)
                deleted.append(root.name)
    return deleted


def _age(file: Path, now: float) -> float | None:
    try:
        return now - file.stat().st_mtime
    except FileNotFoundError:
        return None
