"""Processor time that a PostgreSQL server on this host takes for the sessions of a pool."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

_CLOCK: Final = "clock"
_BEGUN: Final = "begun"
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


def count_sessions(engine: sa.Engine, took: Callable[[float], None]) -> None:
    """Call `took` with the seconds that a session took while it was out of the pool, in the thread
    that brings it back.

    Parallel workers are not included; a server on another host is not counted.
    """

    def connected(session: Any, record: Any) -> None:
        record.info[_CLOCK] = _clock_of(session)

    def checked_out(session: Any, record: Any, proxy: object) -> None:
        record.info[_BEGUN] = _seconds(record.info.get(_CLOCK))

    def checked_in(session: Any, record: Any) -> None:
        begun, now = record.info.pop(_BEGUN, None), _seconds(record.info.get(_CLOCK))
        if begun is not None and now is not None:
            took(max(0.0, now - begun))

    sa.event.listen(engine, "connect", connected)
    sa.event.listen(engine, "checkout", checked_out)
    sa.event.listen(engine, "checkin", checked_in)


def _clock_of(session: Any) -> int | None:
    """The clock of the server's process, as clock_getcpuclockid(3); None if it is not here."""
    host, pid = session.info.host or "/", session.info.backend_pid
    try:
        here = Path(f"/proc/{pid}/comm").read_text().strip() == "postgres"
    except OSError:
        return None
    return (~pid << 3) | 2 if here and (host.startswith("/") or host in _LOCAL) else None


def _seconds(clock: int | None) -> float | None:
    try:
        return None if clock is None else time.clock_gettime(clock)
    except OSError:  # the server was restarted
        return None
