"""Visitors of a board, who send any SQL as Grafana's role: they write large objects, take memory
and temporary files in every session that the role has, and flood the notifications."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import psycopg2
import sqlalchemy as sa

from swingbot.app.keep.reader_watchdog import private_bytes, watching_readers
from swingbot.app.loop import _Alarm
from swingbot_db import limits, roles
from swingbot_db.readers import SessionProcess
from swingbot_db.role_trials import trials
from tests.attack.target import Result, Target
from tests.database import migrate_new
from tests.postgres import OwnServer, own_server
from tests.role_database import RoleDatabase

NAME: Final = "board-visitors"
WANTED: Final = (
    "each wall holds; nothing is written; sessions end once all have more than"
    f" {limits.READER_BYTES >> 20} MiB; the service writes and its loop wakes meanwhile"
)
SESSIONS: Final = 10  # as many as the role has
SECONDS: Final = 6.0
# Each takes memory for as long as it runs; and files.
MEMORY: Final = (
    "SET statement_timeout = 0; SET work_mem = '2GB'; SELECT count(*) FROM"
    " (SELECT g, repeat('x', 200) FROM generate_series(1, 100000000) g ORDER BY 2) x"
)
FILES: Final = MEMORY.replace("2GB", "1MB")
WRITES: Final = (
    "SET default_transaction_read_only = off; SELECT lo_from_bytea(0, decode(repeat('00', 1000000),"
    " 'hex'))"
)
# Listens and reads nothing, so that the server keeps what others send.
KEEPS: Final = "SET statement_timeout = 0; LISTEN swingbot"
FLOODS: Final = f"SET default_transaction_read_only = off; NOTIFY swingbot, '{'x' * 7000}'"
# What the processors fill until the watchdog has looked.
MEMORY_BYTES: Final = 4 * limits.READER_BYTES * max(2, os.cpu_count() or 2)
TEMPORARY_BYTES: Final = 128 << 20  # of each session (docs/security.md)


@dataclass(kw_only=True)
class Peaks:
    """What the attack took at most; `failed`: transactions of the service that failed."""

    memory: int = 0
    files: int = 0
    queue: float = 0.0
    written: int = 0
    failed: int = 0


def run(target: Target) -> Result:
    """Attack a server of its own, with the watchdog of `swingbot web` beside it."""
    with own_server() as server, ExitStack() as stack:
        url = server.create("attack")
        migrate_new(url)
        place = RoleDatabase(url, stack)
        service = place.engine(roles.SERVICE)
        with watching_readers(service):
            grafana = place.url.set(username=roles.GRAFANA)
            passed = [
                one.attempt
                for one in trials(grafana.render_as_string(hide_password=False))
                if not one.held
            ]
            before, peaks = _stored(server), Peaks()
            with _watched(server, place, peaks):
                for statement in (WRITES, MEMORY, FILES):
                    _flood(place, statement)
            grown = _stored(server) - before
            with _watched(server, place, peaks):
                keeper = place.session(roles.GRAFANA)
                keeper.cursor().execute(KEEPS)
                keeper.cursor().execute("BEGIN; SELECT 1")
                alarm, waker = _Alarm(place.engine(roles.SERVICE)), place.session(roles.SERVICE)
                waker.cursor().execute("DELETE FROM swingbot.unseen")
                _flood(place, FLOODS, sessions=3)
                woken = alarm.sleep(0.5)
                waker.cursor().execute("INSERT INTO swingbot.unseen DEFAULT VALUES")
                wakes = any(alarm.sleep(2.0) for _ in range(30))
    held = (
        not passed
        and not woken
        and wakes
        and not peaks.failed
        and peaks.written > 0
        and grown < 32 << 20
        and peaks.files < 2 * SESSIONS * TEMPORARY_BYTES  # also of sessions that are ending
        and peaks.memory < MEMORY_BYTES
        and peaks.queue < 10 * limits.QUEUE_SHARE
    )
    return Result(
        held,
        f"walls passed: {', '.join(passed) or 'none'}; {SESSIONS} sessions took at most"
        f" {peaks.memory >> 20} MiB and {peaks.files >> 20} MiB of files and"
        f" {100 * peaks.queue:.1f} % of the queue, {grown >> 20} MiB are left;"
        f" the service wrote {peaks.written} times, {peaks.failed} failed;"
        f" the loop {'woke' if woken else 'slept'} in the flood, and"
        f" {'woke' if wakes else 'slept'} after a change",
    )


def _flood(place: RoleDatabase, statement: str, sessions: int = SESSIONS) -> None:
    """Send `statement` again and again in so many sessions, new ones for those that end."""
    end = time.monotonic() + SECONDS

    def send() -> None:
        while time.monotonic() < end:
            with suppress(psycopg2.Error), closing(place.session(roles.GRAFANA)) as session:
                while time.monotonic() < end:
                    session.cursor().execute(statement)

    threads = [threading.Thread(target=send, daemon=True) for _ in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a session of the readers does not end"


@contextmanager
def _watched(server: OwnServer, place: RoleDatabase, peaks: Peaks) -> Iterator[None]:
    """Write as the service does, and note what the readers take, until the block ends."""
    over, service = threading.Event(), place.engine(roles.SERVICE)

    def measure() -> None:
        while not over.wait(0.1):
            peaks.memory = max(peaks.memory, _memory(server))
            peaks.files = max(peaks.files, _bytes(server.state.rglob("pgsql_tmp")))

    def write() -> None:
        while not over.wait(0.1):
            try:
                with service.begin() as conn:
                    conn.exec_driver_sql("SELECT pg_notify('swingbot', '')")
                    used = conn.exec_driver_sql("SELECT pg_notification_queue_usage()").scalar_one()
                peaks.queue, peaks.written = max(peaks.queue, used), peaks.written + 1
            except sa.exc.DBAPIError:
                peaks.failed += 1

    threads = [threading.Thread(target=body) for body in (measure, write)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _memory(server: OwnServer) -> int:
    """Memory of the readers' processes that they do not share."""
    total = 0
    for process in psutil.Process(server.process.pid).children(recursive=True):
        pid = process.pid
        total += private_bytes(SessionProcess(session=pid, pid=pid, role=roles.GRAFANA))
    return total


def _stored(server: OwnServer) -> int:
    """Bytes of the tables of all databases."""
    return _bytes(server.state.rglob("base/[0-9]*"))


def _bytes(places: Iterator[Path]) -> int:
    total = 0
    for place in list(places):
        for file in [place, *(place.rglob("*") if place.is_dir() else ())]:
            with suppress(OSError):
                total += file.stat().st_blocks * 512 if file.is_file() else 0
    return total
