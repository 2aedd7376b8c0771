"""Ensure that only one loop works on a database, by an advisory lock in a session that stays open.

PostgreSQL releases the lock when the session ends, however its process ends. Keepalives end the
session of a host that is gone. The session's application_name says who holds the lock.
"""

from __future__ import annotations

import os
import socket
import time
from datetime import UTC, datetime
from typing import Final

import psycopg2
import psycopg2.extensions
import sqlalchemy as sa

from swingbot_db.engine import own_session

_LOCK: Final = 0x5_1_16_B09  # arbitrary, but different from swingbot's other advisory locks
_NAME: Final = "swingbot loop"
_STARTED: Final = "%Y%m%dT%H%M%SZ"
# The session of a killed loop ends at once, except where the network has to notice its end.
_PATIENCE_SECONDS: Final = 5.0
# PostgreSQL gives up a host that is silent for 15 + 3 * 5 s.
_KEEPALIVES: Final = {"idle": 15, "interval": 5, "count": 3}
# pg_locks splits a bigint key into two parts.
_HOLDER: Final = f"""SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
 WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
 AND l.classid = {_LOCK >> 32} AND l.objid = {_LOCK & 0xFFFFFFFF}
 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


class SecondLoop(Exception):
    """Another loop works on this database; the message names it."""


class LoopLock:
    """The lock of this process on the database of `engine`."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._started = datetime.now(UTC).strftime(_STARTED)
        self._session: psycopg2.extensions.connection | None = None

    def hold(self) -> None:
        """Take the lock, or check that this process still has it; call it once a round.

        Raises SecondLoop if another process has it, OperationalError if the database is away.
        """
        if self._session is not None and self._alive(self._session):
            return
        self.release()
        session = self._open()
        end = time.monotonic() + _PATIENCE_SECONDS
        while not _taken(session):
            holder = _holder(session)
            if holder is not None and time.monotonic() > end:
                session.close()
                raise SecondLoop(_sentence(holder))
            time.sleep(0.2)
        self._session = session

    def release(self) -> None:
        """End the session, and with it the lock."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @staticmethod
    def _alive(session: psycopg2.extensions.connection) -> bool:
        try:
            with session.cursor() as cursor:
                cursor.execute("SELECT 1")
        except psycopg2.Error:
            return False
        return True

    def _open(self) -> psycopg2.extensions.connection:
        session = own_session(self._engine)
        # PostgreSQL cuts the name after 63 bytes, so the host is last
        name = f"{_NAME} {os.getpid()} {self._started} {socket.gethostname()}"
        with session.cursor() as cursor:
            cursor.execute("SELECT set_config('application_name', %s, false)", (name,))
            for key, value in _KEEPALIVES.items():
                cursor.execute(f"SET tcp_keepalives_{key} = {value}")
        return session


def _taken(session: psycopg2.extensions.connection) -> bool:
    with session.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))
        row = cursor.fetchone()
    return bool(row and row[0])


def _holder(session: psycopg2.extensions.connection) -> str | None:
    """The application_name of the session that has the lock; None: it was released just now."""
    with session.cursor() as cursor:
        cursor.execute(_HOLDER)
        row = cursor.fetchone()
    return str(row[0]) if row else None


def _sentence(holder: str) -> str:
    who = "a process that does not give its name"
    if holder.startswith(_NAME + " "):
        pid, started, host = [*holder.removeprefix(_NAME).split(maxsplit=2), "?", "?", "?"][:3]
        try:
            when = datetime.strptime(started, _STARTED).strftime("%Y-%m-%d %H:%M:%S UTC")
        except ValueError:
            when = started
        who = f"process {pid} on host {host}, started {when}"
    return (
        f"another loop works on this database: {who}; only one may, so stop it first,"
        " or give this one a database of its own (db.url)"
    )
