"""Numbered points where a process may die: before and after each database commit and each call to the outside.

In service they do nothing. With `SWINGBOT_CRASH_AT=n` the n-th checkpoint that this process passes
kills it with SIGKILL; with `SWINGBOT_CRASH_LOG=file` each name passed is appended to the file.
That is how a test kills the service at every point of a bisection without choosing the points by hand.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

_lock = threading.Lock()
_passed = 0


def checkpoint(name: str) -> None:
    """Pass the point `name`; return, or die if it is this one's turn."""
    global _passed
    at, log = os.environ.get("SWINGBOT_CRASH_AT"), os.environ.get("SWINGBOT_CRASH_LOG")
    if at is None and log is None:
        return
    with _lock:
        _passed += 1
        if log is not None:
            with Path(log).open("a") as file:
                file.write(f"{_passed} {name}\n")
        if at is not None and _passed == int(at):
            os.kill(os.getpid(), signal.SIGKILL)
