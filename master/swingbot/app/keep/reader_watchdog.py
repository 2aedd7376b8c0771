"""A thread of `swingbot web` that ends long and large sessions of Grafana's roles.

Their `statement_timeout` and `work_mem` are defaults that a visitor of a board can change. The
thread has a connection of its own, and does not wait for rounds of the loop or for pages.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psutil

from swingbot.app import limits
from swingbot_db.engine import DatabaseAway, Engine, own_pool
from swingbot_db.readers import SessionProcess, WatchdogError, end_long_sessions

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0  # nothing runs longer than the sum, and the time of one query here
QUERY_SECONDS: Final = 5


@contextmanager
def watching_readers(
    engine: Engine, *, longest: float = limits.READER_SECONDS, poll: float = POLL_SECONDS
) -> Iterator[None]:
    """Watch while the block runs."""
    stop = threading.Event()
    own = own_pool(engine, connections=1, query_seconds=QUERY_SECONDS)
    thread = threading.Thread(
        target=_watch, args=(own, stop, longest, poll), name="reader-watchdog", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(2 * QUERY_SECONDS)
        own.dispose()


def _watch(engine: Engine, stop: threading.Event, longest: float, poll: float) -> None:
    last = ""  # a problem is logged when it begins
    while not stop.wait(poll):
        problem = ""
        try:
            for ended in end_long_sessions(engine, longest, private_bytes):
                log.warning(
                    "ended a session of %s after %.0f s with %d MiB: %s",
                    ended.role,
                    ended.seconds,
                    ended.memory >> 20,
                    ended.query,
                )
        except (WatchdogError, DatabaseAway) as error:
            problem = str(error).partition("\n")[0]
        except Exception:  # whatever it is, the watchdog must go on
            problem = "the watchdog of Grafana's roles failed"
            if problem != last:
                log.exception(problem)
        if problem and problem != last:
            log.warning("%s", problem)
        last = problem


def private_bytes(reader: SessionProcess) -> int:
    """Return the memory that the process does not share, in bytes; 0 if it is on another host."""
    try:
        process = psutil.Process(reader.pid)
        title, memory = " ".join(process.cmdline()), process.memory_info()
    except psutil.Error:
        return 0
    if not re.search(rf"^postgres: .*\b({reader.role}\b|for PID {reader.session}\b)", title):
        return 0  # a number of another host or container
    return int(memory.rss - memory.shared)
