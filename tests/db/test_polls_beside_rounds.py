"""The loop decides on while the remote of a tree does not answer."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.app import poller
from swingbot.app.loop import run
from swingbot.app.settings import load
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.mail import brain_environment


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


def test_orders_are_handed_out_while_a_remote_does_not_answer(
    tmp_path: Path,
    db_url: str,
    engine: sa.Engine,
    silent: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(poller, "STOP_SECONDS", 0.1)
    brain = a_brain(tmp_path, db_url, engine)
    port = silent.getsockname()[1]
    with engine.begin() as conn:
        conn.execute(sa.text("UPDATE tree SET url = :url"), {"url": f"git://127.0.0.1:{port}/l"})
        (polled,) = conn.execute(sa.text("SELECT polled_at FROM tree")).scalars()
    asked: list[socket.socket] = []

    def over() -> bool:
        if not asked:
            asked.append(silent.accept()[0])  # decide nothing before a poll waits for its answer
        return brain.count("attempt") > 0 or time.monotonic() > end

    end = time.monotonic() + 120
    run(brain.settings, engine, brain.lab, until=over)
    assert brain.count("attempt") > 0
    with engine.connect() as conn:
        assert list(conn.execute(sa.text("SELECT polled_at FROM tree")).scalars()) == [polled]
    asked[0].close()


def a_brain(root: Path, db_url: str, engine: sa.Engine) -> Brain:
    """A lab with a branch whose first kernels wait for their orders."""
    make_fakelinux(root / "linux", [FakeCommit(), FakeCommit()])
    settings = load(environ=brain_environment(root / "state", db_url))
    brain = make_brain(settings, engine, root / "linux")
    brain.watch(brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main"))
    return brain
