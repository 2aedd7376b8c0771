"""A loop that is stuck in Python stops its heartbeat; one that waits for its database does not.

The loop is a real process. A signal makes its main thread spin, as an endless computation would.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.adapters.part_heartbeat import beats
from swingbot.app.keep.health_check import problems_here
from swingbot.app.settings import load
from swingbot.core.keep import health
from swingbot_db.read import overview
from tests.buildbot.lab import eventually
from tests.buildbot.stuck import SPIN, can_be_stuck
from tests.fakes.mail import brain_environment

STALLED = 3.0  # seconds; a round on an empty database takes a tenth of one
SILENT = 6.0  # seconds without a heartbeat that are no accident, with one every 2 s


@pytest.fixture
def state(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    return tmp_path / "state"


@pytest.fixture
def loop(tmp_path: Path, state: Path, db_url: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        **brain_environment(state, db_url),
        **can_be_stuck(tmp_path),
        "SWINGBOT_HEALTH_STALLED_SECONDS": str(STALLED),
    }
    argv = [sys.executable, "-m", "swingbot.app.cli", "loop"]
    with subprocess.Popen(argv, env=environment) as found:
        eventually("it works", lambda: silence(state) < 2 * SILENT, 120)
        yield found
        found.kill()


def texts(problems: list[dict[str, Any]]) -> list[str]:
    return [problem["text"] for problem in problems]


def silence(state: Path) -> float:
    return next((beat.age_seconds for beat in beats(state) if beat.part == "loop"), 1e9)


def test_a_loop_that_is_stuck_in_python_has_no_heartbeat(
    loop: subprocess.Popen[bytes], state: Path
) -> None:
    loop.send_signal(SPIN)
    eventually("its heartbeat stops", lambda: silence(state) > SILENT)
    assert loop.poll() is None


def test_a_loop_that_waits_for_a_statement_has_a_heartbeat_and_status_names_it(
    loop: subprocess.Popen[bytes],
    state: Path,
    db_url: str,
    engine: sa.Engine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (health, overview):
        monkeypatch.setattr(module, "LONG_SECONDS", STALLED)
    settings = load(environ=brain_environment(state, db_url))
    waiting = (
        "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted"
        " AND relation = 'swingbot.unseen'::regclass AND datname = current_database()"
    )
    with engine.begin() as conn:
        conn.execute(sa.text("LOCK TABLE swingbot.unseen"))
        eventually("it waits", lambda: conn.execute(sa.text(waiting)).all())
        eventually_waited = time.monotonic() + STALLED + SILENT + 2
        while time.monotonic() < eventually_waited:
            assert silence(state) < STALLED + SILENT
            time.sleep(0.2)
        assert conn.execute(sa.text(waiting)).all(), "it still waits"
        (round_,) = [text for text in texts(problems_here(settings)) if text.startswith("loop")]
        assert "one round" in round_
        assert "now in the step `" in round_
        with engine.connect() as other:
            stuck = texts(overview.long_transactions(other))
        assert any(
            "in one transaction" in text
            and re.search("its statement waits for another transaction: [A-Z]+ ", text)
            for text in stuck
        )
    loop.send_signal(signal.SIGTERM)
    assert loop.wait(60) == 0
