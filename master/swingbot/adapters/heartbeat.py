"""Heartbeat of a process: a file that it touches each round, containing its last problem.

Works on a full disk.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from swingbot.core.keep.health import LoopHeartbeat

_LONGEST = 300  # maximum characters of a problem


class Heartbeat:
    """Writes the heartbeat of this process.

    It never raises; a reader reports a missing heartbeat.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._said: str | None = "nothing yet"

    def beat(self, problem: str | None = None) -> None:
        with suppress(OSError):
            if problem == self._said:
                os.utime(self._file)
                return
            temporary = self._file.with_name(self._file.name + ".part")
            temporary.write_text(json.dumps({"problem": problem and problem[:_LONGEST]}) + "\n")
            temporary.replace(self._file)
            self._said = problem


def last_beat(file: Path) -> LoopHeartbeat | None:
    """Return the last heartbeat; None if there never was one."""
    try:
        age = time.time() - file.stat().st_mtime
        document = json.loads(file.read_text())
        problem = document["problem"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return LoopHeartbeat(age_seconds=0.0, problem=f"{file} cannot be read")
    return LoopHeartbeat(
        age_seconds=max(0.0, age), problem=problem if isinstance(problem, str) else None
    )
