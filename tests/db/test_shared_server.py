"""The server that the processes of a test run share lives as long as one of them, killed or not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

import pytest

from swingbot.app import postgres
from tests.buildbot.lab import eventually

_USER = """
import sys
from tests.postgres import shared_server
with shared_server() as server:
    server.template("once", lambda url: print("filled", flush=True))
    print(server.state, flush=True)
    sys.stdin.read()
"""


def a_user(run: str) -> tuple[subprocess.Popen[str], list[str]]:
    """A process that uses the server of a run, and what it printed."""
    user = subprocess.Popen(
        [sys.executable, "-c", _USER],
        env={**os.environ, "PYTEST_XDIST_TESTRUNUID": run, "PYTHONPATH": "."},
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert user.stdout is not None
    said = [user.stdout.readline().strip()]
    if said == ["filled"]:
        said.append(user.stdout.readline().strip())
    return user, said


@pytest.mark.parametrize("killed", [True, False])
def test_the_server_ends_with_its_last_user(killed: bool) -> None:
    run = uuid.uuid4().hex
    first, (filled, state) = a_user(run)
    second, said = a_user(run)
    assert filled == "filled" and said == [state]
    assert Path(state).parent == Path(tempfile.gettempdir())
    first.kill() if killed else first.communicate()
    first.wait()
    assert postgres.answers(Path(state))
    third, said = a_user(run)
    assert said == [state]
    for user in (second, third):
        user.kill() if killed else user.communicate()
        user.wait()
    eventually("it is gone", lambda: not Path(state).exists())
    assert not postgres.answers(Path(state))
