"""A loop without its process: the brain ticks and a fake lab works until nothing moves any more.

As a program (`python -m tests.fakes.brain REPO BASE`) it registers the tree and runs to rest,
so that a test can kill it anywhere. With BRAIN_DIES=1 it dies after each
transaction that wrote something, and lives again.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from swingbot.adapters.maildir import letters
from swingbot.app.settings import Settings, load
from swingbot.app.wiring import connect, mail_ways, make_lab, sync_testboxes
from swingbot.core.model.records import JobFile
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.service.checkpoint import on_checkpoint
from swingbot.service.lab.load_testboxes import load_testboxes
from swingbot.service.ports import Lab
from swingbot.service.report.send import send_due
from swingbot.service.tick import tick
from swingbot.service.watch.trees import NewTree, add_tree, poll_tree
from swingbot_db import read
from swingbot_db.reports import PostgresOutbox
from tests.fakes.lab import FakeLab

JOB = JobFile(
    name="vm-page-fault.yaml",
    text=(Path(__file__).parents[2] / "jobs" / "vm-page-fault.yaml").read_text(),
)
METRIC = "page-fault.per_process_ops"

# Longer together than the longest pause between two attempts (`core/plan/queue.py`).
PAUSES, PAUSE_SECONDS = 60, 5.0


class NoRest(AssertionError):
    """Something is open and nothing happens."""


@dataclasses.dataclass(kw_only=True)
class Brain:
    """A loop without its process: `run` ticks and lets the fake lab work until nothing moves any
    more.
    """

    settings: Settings
    engine: sa.Engine
    lab: Lab
    fake: FakeLab
    repo: Path

    def run(self) -> None:
        mailer, archive = mail_ways(self.settings)
        for _ in range(400):
            tick(self.lab)
            send_due(PostgresOutbox(self.engine), mailer, archive, self.lab.now())
            if self.fake.work() == 0 and self.idle():
                return
        raise NoRest("the brain does not come to rest")

    def without(self, testbox: str) -> Lab:
        """The lab as it is once the file of this testbox is gone."""
        others = {
            name: definition
            for name, definition in self.lab.testboxes.present.items()
            if name != testbox
        }
        known = load_testboxes(self.lab.transaction, KnownTestboxes(present=others))
        return dataclasses.replace(self.lab, testboxes=known)

    def idle(self) -> bool:
        with self.engine.connect() as conn:
            return bool(read.open_work(conn)["idle"])

    def watch(self, base: str, **more: Any) -> None:
        tree = add_tree(
            self.lab,
            NewTree(
                **{
                    "name": "fake",
                    "url": str(self.repo),
                    "branch": "main",
                    "base": base,
                    "job_files": [JOB],
                    "testboxes": ["vm-icount"],
                    "paths": [],
                    "kconfig": "vm-x86_64",
                    "compiler": "gcc",
                    **more,
                },
            ),
        )
        assert poll_tree(self.lab.transaction, self.lab.git, tree) is None

    def poll(self) -> None:
        with self.lab.transaction("read") as tx:
            (tree,) = tx.trees.all()
        assert poll_tree(self.lab.transaction, self.lab.git, tree) is None

    def facts(self, kind: str, number: int = 1) -> dict[str, Any]:
        with self.engine.connect() as conn:
            found: dict[str, Any] = {
                "c": read.comparison,
                "b": read.bisection,
                "i": read.incident,
                "r": read.report,
            }[kind](conn, f"{kind}{number}")
            return found

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
        fake=FakeLab(engine=engine, artifacts=settings.artifacts, repo=repo),
        repo=repo,
    )


def die_after_a_commit(engine: sa.Engine) -> None:
    """Kill this process at the next checkpoint at which the database has changed since now."""

    def completed() -> int:
        with engine.connect() as conn:
            return int(
                conn.execute(
                    sa.text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
                ).scalar_one()
            )

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
    brain.fake.end_delivered()
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
