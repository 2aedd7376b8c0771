"""Two loops as real processes on one database: the second refuses to start and names the first."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.fakes.mail import brain_environment

END_SECONDS = 120
HOLDERS = (
    "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'swingbot loop %'"
    " AND datname = current_database()"
)
HELD = (
    f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid IN ({HOLDERS})"
)


class Loops:
    """Starts `swingbot loop`, each in a state directory of its own, as on two hosts."""

    def __init__(self, root: Path, db_url: str) -> None:
        self._root, self._db_url = root, db_url
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        state = self._root / f"state{len(self.running)}"
        state.mkdir()
        environment = {**os.environ, **brain_environment(state, self._db_url)}
        with self._log(len(self.running)).open("wb") as log:
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "swingbot.app.cli", "loop"],
                    env=environment,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
        return self.running[-1]

    def _log(self, number: int) -> Path:
        return self._root / f"loop{number}.log"

    def said(self, number: int) -> str:
        return self._log(number).read_text()


@pytest.fixture
def loops(tmp_path: Path, db_url: str) -> Iterator[Loops]:
    found = Loops(tmp_path, db_url)
    yield found
    for loop in found.running:
        loop.kill()
        loop.wait()


def eventually(what: str, ready: Callable[[], bool]) -> None:
    end = time.monotonic() + END_SECONDS
    while not ready():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def holds(engine: sa.Engine) -> bool:
    with engine.connect() as conn:
        return bool(conn.execute(sa.text(HELD)).scalar_one() == 1)


def has_no_unseen_change(engine: sa.Engine) -> bool:
    with engine.connect() as conn:
        return not conn.execute(sa.text("SELECT FROM swingbot.unseen")).all()


def test_a_second_loop_refuses_to_start_and_names_the_first(
    loops: Loops, engine: sa.Engine
) -> None:
    first = loops.start()
    eventually("the first holds the lock", lambda: holds(engine))
    os.kill(first.pid, signal.SIGSTOP)  # a loop that hangs is still the first
    second = loops.start()
    assert second.wait(END_SECONDS) == 1
    (line,) = loops.said(1).strip().splitlines()
    assert re.fullmatch(
        r"swingbot: another loop works on this database: process"
        rf" {first.pid} on host {re.escape(socket.gethostname())[:20]}\S*,"
        r" started \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC; only one may, so stop it first, .*",
        line,
    )
    first.kill()  # without any time to release the lock
    first.wait()
    third = loops.start()
    eventually("the third works", lambda: holds(engine) and has_no_unseen_change(engine))
    third.terminate()
    assert third.wait(END_SECONDS) == 0
    assert not holds(engine)


def test_a_loop_that_lost_its_session_to_another_loop_ends(loops: Loops, engine: sa.Engine) -> None:
    first = loops.start()
    eventually("the first holds the lock", lambda: holds(engine))
    os.kill(first.pid, signal.SIGSTOP)
    with engine.connect() as conn:
        (backend,) = conn.execute(sa.text(HOLDERS)).scalars()
        conn.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": backend})
    second = loops.start()
    eventually("the second holds it", lambda: holds(engine))
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(END_SECONDS) == 1
    assert f"another loop works on this database: process {second.pid} on host" in loops.said(0)
    assert second.poll() is None


def test_a_loop_whose_session_ends_takes_the_lock_again(loops: Loops, engine: sa.Engine) -> None:
    first = loops.start()
    eventually("it holds the lock", lambda: holds(engine))
    with engine.connect() as conn:
        (backend,) = conn.execute(sa.text(HOLDERS)).scalars()
        conn.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": backend})

    def again() -> bool:
        with engine.connect() as conn:
            return [*conn.execute(sa.text(HOLDERS)).scalars()] not in ([], [backend])

    eventually("a session again", again)
    assert first.poll() is None
