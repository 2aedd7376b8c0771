"""Time of the last sign of work from this process's main thread; signs of others do not count.

A sign is a passed checkpoint (each transaction has two), the end of a child process or of a
database statement, or a chunk of an artifact. While it waits for something that has a time limit,
it is not stalled.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from swingbot.service.ports import Transaction
from swingbot.service.ports.transaction import OpenTransaction

# A statement that takes longer is stalled, and so is a process that asks the database without end.
STATEMENT_SECONDS: Final = 300.0
UNCOMMITTED_SECONDS: Final = 900.0

_now = time.monotonic
_last = _committed = _now()
_waits_until = _statement_until = float("-inf")
_steps: tuple[tuple[float, str], ...] = ()  # under way, the innermost last, with its begin


def committed() -> None:
    """A checkpoint was passed, or something that was waited for has ended."""
    global _last, _committed
    if _in_main_thread():
        _last = _committed = _now()


def made() -> None:
    """Part of a long task is done."""
    global _last
    if _in_main_thread():
        _last = _now()


def statement_begun() -> None:
    global _statement_until
    if _in_main_thread():
        _statement_until = _now() + STATEMENT_SECONDS


def statement_over() -> None:
    global _statement_until
    if _in_main_thread():
        _statement_until = float("-inf")
        made()


@contextmanager
def waiting(seconds: float) -> Iterator[None]:
    """The block waits for something that ends after `seconds` at the latest."""
    global _waits_until
    if not _in_main_thread():
        yield
        return
    before, _waits_until = _waits_until, _now() + seconds
    try:
        yield
    finally:
        _waits_until = before
        committed()


@contextmanager
def step(name: str) -> Iterator[None]:
    """The block is a step of the round; the outermost one is the round itself."""
    global _steps
    if not _in_main_thread():
        yield
        return
    before, _steps = _steps, (*_steps, (_now(), name))
    try:
        yield
    finally:
        _steps = before


def named(transaction: OpenTransaction) -> OpenTransaction:
    """As `transaction`; each one is a step."""

    @contextmanager
    def begin(name: str) -> Iterator[Transaction]:
        with step(name), transaction(name) as tx:
            yield tx

    return begin


def round_now() -> tuple[float, str | None]:
    """Return when the present round began, and its innermost step; None between two rounds."""
    steps = _steps
    return (steps[0][0], steps[-1][1]) if steps else (0.0, None)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def stalled(seconds: float) -> bool:
    """Return True if there was no sign for `seconds`, or no checkpoint for UNCOMMITTED_SECONDS."""
    now = _now()
    if now < _waits_until:
        return False
    if now - max(_committed, _waits_until) > UNCOMMITTED_SECONDS:
        return True
    return now - max(_last, _waits_until, _statement_until) > seconds
