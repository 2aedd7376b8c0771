"""Hold signals back while a process is started."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals that have a handler back until the end, so that a handler can raise.

    Python runs hooks around the fork() of a process with `preexec_fn`, and ignores what is raised
    in those: a Ctrl-C would be lost. Other threads than the main one handle no signals.
    """
    arrived: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {
            number: signal.signal(number, lambda number, _: arrived.append(number))
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if callable(signal.getsignal(number))
        }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in arrived:
            signal.raise_signal(number)
