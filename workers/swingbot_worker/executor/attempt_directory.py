"""The directory of one attempt on a worker: who works in it, what it produced, whether that was delivered.

    <state>/attempts/a12/
        lock           held (flock) by the executor as long as it lives; no lock, no executor
        order.json     with the attempt's token: readable by the owner only
        started        the work was begun: it is never begun twice
        out/           the result files
        outcome.json   the work is over; appears whole or not at all
        delivered      the service has the outcome (or there is no service to deliver to)
        executor.log   progress, a line each

Everything is decided by these files, so that any process can die at any line and the next one knows what to do.
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
KEEP_UNDELIVERED_SECONDS = 7 * 24 * 3600.0  # whoever wanted it has long made another attempt


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
        """A descriptor that holds the lock, or None while an executor lives. Close it, or pass it on to an executor."""
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
    """The place of `attempt` ("a12"), made if it is new."""
    place = AttemptDirectory(attempts(state) / attempt)
    place.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    return place


def write(file: Path, text: str, mode: int = 0o600) -> None:
    """Make `file` hold `text`: whole, on the disk, or not at all."""
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
    """Forget attempts that were delivered a day ago, or that nobody could deliver in a week; says which."""
    now = time.time() if now is None else now
    forgotten = []
    for root in sorted(attempts(state).glob("a*")):
        place = AttemptDirectory(root)
        delivered = _age(place.delivered, now)
        if (delivered or 0.0) > KEEP_DELIVERED_SECONDS or (
            delivered is None and (_age(root, now) or 0.0) > KEEP_UNDELIVERED_SECONDS
        ):
            held = place.try_lock()
            if held is not None:
                shutil.rmtree(root, ignore_errors=True)
                os.close(held)
                forgotten.append(root.name)
    return forgotten


def _age(file: Path, now: float) -> float | None:
    try:
        return now - file.stat().st_mtime
    except FileNotFoundError:
        return None
