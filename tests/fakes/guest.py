"""Guests that add files of their choice to the results of a lab that answers at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest import mock

import sqlalchemy as sa

from swingbot.core.model.records import JobFile
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes import lab as fake_lab
from tests.fakes.brain import Brain
from tests.table_requests import compare

JOB: Final = JobFile(
    name="chosen.yaml",
    text="runs: 2\npage-fault:\n  mode: process\n  nr_task: 1\n  cycles: 1\n  size: 128M\n",
)
Files = Callable[[str], dict[str, bytes]]  # of a run's directory: what its guest adds


@dataclass(kw_only=True)
class Guest:
    """A lab whose guests add files to their results."""

    brain: Brain
    add: Files = lambda directory: {}

    def compare(self, boots: int = 4) -> int:
        """A comparison of two kernels, judged; returns its number."""
        base = self.brain.lab.tools.git.fetch_branch("base", str(self.brain.repo), "main")
        (slow,) = add_commits(self.brain.repo, [FakeCommit(speed=90)])
        number = compare(self.brain.lab, base, slow, boots=boots)
        self.brain.run()
        return number


@contextmanager
def a_guest(brain: Brain) -> Iterator[Guest]:
    """A lab that watches a tree with JOB, whose guests add what `Guest.add` says."""
    brain.fake.origin = "measured"
    guest = Guest(brain=brain)
    honest = fake_lab.run_files

    def files(directory: str, *more: Any) -> dict[str, bytes]:
        return honest(directory, *more) | guest.add(directory)

    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base, job_files=[JOB])
    with mock.patch.object(fake_lab, "run_files", files):
        yield guest


def counts(*values: str) -> Files:
    """perf-stat's totals, one event for each value."""
    lines = "".join(f"{v},,event-{n},1000,100.00,,\n" for n, v in enumerate(values))
    return lambda directory: {f"{directory}/perf-stat": lines.encode()}


def random_names(count: int) -> Files:
    """Monitors with names that no other run has."""
    fresh = itertools.count()
    proc = ("proc-vmstat", "meminfo", "softirqs", "interrupts")
    nodes = ("numa-vmstat", "numa-numastat", "numa-meminfo")

    def files(directory: str) -> dict[str, bytes]:
        names = [f"n{next(fresh)}" for _ in range(count)]
        plain = "".join(f"{name} 9\n" for name in names)
        of_cpu = "CPU0\n" + "".join(f"{name}: 9 x\n" for name in names)
        of_node = "node: 0\n" + plain
        memory = "".join(f"Node 0 {name}: 9 kB\n" for name in names)
        texts = dict(
            zip(
                (*proc, *nodes),
                (plain, plain, of_cpu, of_cpu, of_node, of_node, memory),
                strict=True,
            )
        )
        return {
            f"{directory}/{name}": f"time: 1\n{text}time: 2\n{text.replace(' 9', ' 19')}".encode()
            for name, text in texts.items()
        } | {
            f"{directory}/perf-stat": "".join(
                f"{n},,{name},1000,100.00,,\n" for n, name in enumerate(names)
            ).encode()
        }

    return files


def views(engine: sa.Engine) -> list[str]:
    named = sa.text("SELECT viewname FROM pg_views WHERE schemaname = 'swingbot' ORDER BY 1")
    with engine.connect() as conn:
        return list(conn.execute(named).scalars())


def read_whole(engine: sa.Engine, view: str) -> int:
    """The rows of a view, every column of which was computed."""
    with engine.connect() as conn:
        return len(conn.execute(sa.text(f"SELECT v::text FROM {view} v")).all())
