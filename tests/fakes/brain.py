"""A loop without its process: the brain ticks and a fake lab works until nothing moves any more.

As a program (`python -m tests.fakes.brain REPO BASE`) it registers the tree and runs to rest,
so that a test can kill it anywhere. With BRAIN_DIES=1 it dies after each
transaction that wrote something, and lives again.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.adapters.maildir import letters
from swingbot.app.settings import Settings, load
from swingbot.app.wiring import connect, make_lab, make_sender, sync_testboxes
from swingbot.service.checkpoint import on_checkpoint
from swingbot_db import read
from swingbot_db.store import transactions
from tests.database import next_transaction
from tests.fakes.lab import Desk, FakeLab, fakelinux_states
from tests.fakes.loop import Loop, NoRest
from tests.fakes.mail import running_smtpd

# Longer together than the longest pause between two attempts (`core/plan/queue.py`).
PAUSES, PAUSE_SECONDS = 60, 5.0


@dataclass(kw_only=True)
class Brain(Loop):
    """A loop on PostgreSQL. As a context it runs a mail server from the first mail on."""

    settings: Settings
    engine: sa.Engine
    servers: ExitStack = field(default_factory=ExitStack)
    lacks_server: bool = False

    def __enter__(self) -> Brain:
        self.lacks_server = True
        return self

    def __exit__(self, *_: object) -> None:
        self.servers.close()

    def send(self) -> None:
        if self.lacks_server and self.count("report WHERE state = 'queued'"):
            self.servers.enter_context(running_smtpd(self.settings))
            self.lacks_server = False
        sender = make_sender(self.settings, self.engine, self.lab)
        sender.send_due(self.lab.clock.now())

    def idle(self) -> bool:
        with self.engine.connect() as conn:
            return bool(read.open_work(conn)["idle"])

    def facts(self, kind: str, number: int = 1) -> dict[str, Any]:
        with self.engine.connect() as conn:
            readers: dict[str, Callable[..., Any]] = {
                "c": read.table,
                "b": read.bisection,
                "i": read.incident,
                "r": read.report,
            }
            return dict(readers[kind](conn, f"{kind}{number}"))

    def count(self, table: str) -> int:
        with self.engine.connect() as conn:
            return int(conn.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one())

    @property
    def mails(self) -> list[str]:
        return [letter.subject for letter in letters(self.settings.maildir)]


def make_brain(settings: Settings, engine: sa.Engine, repo: Path) -> Brain:
    lab = make_lab(settings, engine)
    sync_testboxes(lab)
    return Brain(
        settings=settings,
        engine=engine,
        lab=lab,
        fake=FakeLab(
            desk=Desk(transactions(engine)),
            artifacts=ArtifactDirectory(settings.artifacts),
            state=fakelinux_states(repo, settings.mirror),
        ),
        repo=repo,
    )


def die_after_a_commit(engine: sa.Engine) -> None:
    """Kill this process at the next checkpoint at which the database has changed since now."""

    def completed() -> int:
        with engine.connect() as conn:
            return next_transaction(conn)

    began = completed()

    def look() -> None:
        if completed() != began:
            os.kill(os.getpid(), signal.SIGKILL)

    on_checkpoint(look)


def work(repo: Path, base: str, *, mortal: bool = False) -> None:
    """Register the tree and run to rest, or, if mortal, to the first commit."""
    found = load(environ=os.environ)
    brain = make_brain(found, connect(found), repo)
    brain.watch(base)
    if not mortal:
        return brain.run()
    Desk(brain.lab.transaction).end_delivered()
    die_after_a_commit(brain.engine)
    for _ in range(PAUSES):  # an attempt that died with its brain is repeated after a pause
        try:
            return brain.run()
        except NoRest:
            time.sleep(PAUSE_SECONDS)
    with brain.engine.connect() as conn:
        raise NoRest(str(read.open_work(conn)))


def live(repo: Path, base: str) -> None:
    """Live again after each death; print the number of lives."""
    for life in itertools.count(1):
        child = os.fork()
        if not child:
            work(repo, base, mortal=True)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended != -signal.SIGKILL:
            print(life, flush=True)
            sys.exit(ended)


if __name__ == "__main__":
    (live if os.environ.get("BRAIN_DIES") else work)(Path(sys.argv[1]), sys.argv[2])
