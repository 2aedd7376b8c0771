"""Try what Grafana's roles may do, by its effect: write, lock, run programs, fill disk and memory.

Each statement runs in a session of the role, in a transaction that is rolled back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import psycopg2
import psycopg2.errors
import sqlalchemy as sa

_SECONDS: Final = 60.0  # for a statement that a limit or the watchdog should end

# wall, attempt, statement
REFUSED: Final = (
    ("rows", "adds a row", "INSERT INTO swingbot.tree (name) VALUES ('x')"),
    ("rows", "reads a table", "SELECT 1 FROM swingbot.report LIMIT 1"),
    ("rows", "creates a temporary table", "CREATE TEMPORARY TABLE x (x int)"),
    ("objects", "stores a large object", "SELECT lo_from_bytea(0, 'x')"),
    ("objects", "creates a large object", "SELECT lo_creat(-1)"),
    ("log", "writes to the write-ahead log", "SELECT pg_logical_emit_message(false, 'x', 'x')"),
    ("log", "takes a transaction number", "SELECT pg_current_xact_id()"),
    ("locks", "takes an advisory lock", "SELECT pg_try_advisory_lock(1)"),
    ("sessions", "notifies by a function", "SELECT pg_notify('swingbot', 'x')"),
    ("sessions", "ends a session of its role", "SELECT pg_terminate_backend(pg_backend_pid())"),
    ("sessions", "exports its snapshot", "SELECT pg_export_snapshot()"),
    ("sessions", "sleeps", "SELECT pg_sleep(0)"),
    ("programs", "runs a block of code", "DO $$ BEGIN END $$"),
    ("programs", "runs a program", "COPY (SELECT 1) TO PROGRAM 'true'"),
    ("files", "reads a file", "SELECT pg_read_file('PG_VERSION')"),
    ("files", "raises its limit of files", "SET temp_file_limit = -1"),
)
_FILES: Final = (
    "SELECT count(*) FROM"
    " (SELECT repeat(md5(g::text), 7) FROM generate_series(1, 900000) g ORDER BY 1) x"
)
# 300 MB that the server keeps while it counts.
LARGE: Final = (
    "WITH large AS MATERIALIZED (SELECT repeat('x', 300000000)) SELECT count(*) FROM large,"
    " LATERAL (SELECT generate_series(1, 1000000000000)) x"
)


class LoginError(Exception):
    """The role cannot log in; the message is the server's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleTrial:
    """One attempt to get past a wall, with its result; `held`: the wall stopped it."""

    wall: str
    attempt: str
    saw: str
    held: bool


def trials(url: str) -> Iterator[RoleTrial]:
    """Try all walls as the role that `url` logs in as. Raises LoginError."""
    for wall, attempt, statement in REFUSED:
        error, _ = _try(url, statement)
        refused = isinstance(error, psycopg2.errors.InsufficientPrivilege)
        yield RoleTrial(wall=wall, attempt=attempt, saw=_saw(error), held=refused)
    error, _ = _try(url, _FILES)
    limited = isinstance(error, psycopg2.errors.ConfigurationLimitExceeded)
    yield RoleTrial(wall="disk", attempt="sorts 200 MB in files", saw=_saw(error), held=limited)
    error, seconds = _try(url, LARGE)
    ended = isinstance(error, (psycopg2.errors.OutOfMemory, psycopg2.OperationalError))
    ended = ended and not isinstance(error, psycopg2.errors.QueryCanceled)
    yield RoleTrial(
        wall="memory",
        attempt="keeps 300 MB",
        saw=f"{_saw(error)} after {seconds:.1f} s",
        held=ended,
    )


def _try(url: str, statement: str) -> tuple[psycopg2.Error | None, float]:
    """Run `statement`; return its error, None if it succeeded, and its seconds."""
    plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    try:
        session = psycopg2.connect(plain, connect_timeout=10)
    except psycopg2.OperationalError as refusal:
        raise LoginError(str(refusal).strip().splitlines()[0]) from None
    try:
        cursor = session.cursor()
        cursor.execute("SET TRANSACTION READ WRITE")
        cursor.execute("SET LOCAL work_mem = '1GB'" if statement == LARGE else "SELECT 1")
        cursor.execute(f"SET LOCAL statement_timeout = '{_SECONDS:.0f}s'")
        began, error = time.monotonic(), None
        try:
            cursor.execute(statement)
        except psycopg2.Error as refusal:
            error = refusal
        return error, time.monotonic() - began
    finally:
        session.close()


def _saw(error: psycopg2.Error | None) -> str:
    return "it was done" if error is None else str(error).strip().splitlines()[0]
