"""Numbered points at which a process may die: before and after each database commit and each call
to an external service.

In production they only show that the process makes progress. With `SWINGBOT_CRASH_AT=n` the n-th
checkpoint that this process passes kills it with SIGKILL. With `SWINGBOT_CRASH_LOG=file` the name
of each passed checkpoint is appended to the file. Tests use this to kill the service at every point
of a bisection without listing the points by hand.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

_lock = threading.Lock()
_passed = 0
_observers: list[Callable[[], None]] = []


def on_checkpoint(observe: Callable[[], None]) -> None:
    """Call `observe` at each checkpoint of this process: it makes progress."""
    _observers.append(observe)


def checkpoint(name: str) -> None:
    """Pass the point `name`; return, or die if its number is the selected one."""
    global _passed
    for observe in _observers:
        observe()
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
