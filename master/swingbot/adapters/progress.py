"""When the main thread of this process last made progress.

Progress is a passed checkpoint (each transaction has two) or the end of a child process. While it
waits for a child process that has a time limit, it is not stalled.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_last = time.monotonic()
_waits_until = float("-inf")


def made() -> None:
    global _last
    _last = time.monotonic()


@contextmanager
def waiting(seconds: float) -> Iterator[None]:
    """The block waits for something that ends after `seconds` at the latest."""
    global _waits_until
    _waits_until = time.monotonic() + seconds
    try:
        yield
    finally:
        _waits_until = float("-inf")
        made()


def stalled_seconds() -> float:
    """Seconds without progress; 0 while waiting."""
    now = time.monotonic()
    return 0.0 if now < _waits_until else now - max(_last, _waits_until)
