"""The side of the executors in the fleet benchmark, in a process of its own: it takes what is
dispatched, waits as long as a build or boot takes, and delivers outcomes through the database
functions of the exchange. Branches move, and people ask for comparisons.

    python -m benchmarks.fleet_player FILE      started by benchmarks.fleet; ends when stdin does
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import select
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from benchmarks.fleet_world import Size, move_branch, tree_name, worker_names
from swingbot.adapters.artifacts import ArtifactDirectory
from swingbot.app.settings import load
from swingbot.app.submitter import DatabaseSubmitter
from swingbot.app.wiring import make_lab
from swingbot.core.access.roles import Role
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.service.ports import Lab, RequestError
from swingbot_db.engine import make_engine
from swingbot_db.store import patient_transactions
from tests.fakes.lab import Desk, Dispatched, FakeLab, fakelinux_states
from tests.fakes.people import a_person
from tests.table_requests import comparing

LOOK_SECONDS: Final = 0.1  # between two looks for what was dispatched
# An executor asks every 5 s, and every third time renews its lease: the writes of this player are
# those of a real fleet, and two thirds of its reads are left out.
ASK_SECONDS: Final = 15.0
COUNT_SECONDS: Final = 5.0
AT_ONCE: Final = 10  # comparisons that the one greedy asker asks for at a time
# Testboxes that could work and do not, and what there is to do.
_COUNT: Final = """
SELECT (SELECT count(*) FROM lease) AS busy,
  count(*) FILTER (WHERE state = 'ready') AS ready,
  count(*) FILTER (WHERE state = 'waiting') AS waiting,
  count(*) FILTER (WHERE kind = 'build' AND state = 'running') AS building,
  count(DISTINCT testbox) FILTER (WHERE state = 'ready'
    AND NOT EXISTS (SELECT FROM lease l WHERE l.testbox = o.testbox)) AS starved
FROM orders o WHERE state IN ('waiting', 'ready', 'running')
"""


@dataclass
class Player:
    """One process that is all executors. `tips`: what each tree moves to, oldest first."""

    size: Size
    engine: sa.Engine
    lab: Lab
    submitter: DatabaseSubmitter
    fake: FakeLab
    repository: Path
    tips: dict[str, list[str]]
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    queue: deque[Dispatched] = field(default_factory=deque)  # builds that wait for a worker
    working: int = 0
    events: list[tuple[float, int, str, Any]] = field(default_factory=list)
    order: itertools.count[int] = field(default_factory=itertools.count)
    done: dict[str, int] = field(default_factory=lambda: {"build": 0, "boot": 0})
    asked: dict[str, list[int]] = field(default_factory=dict)
    counts: list[dict[str, float]] = field(default_factory=list)
    moved: int = 0  # how often a branch moved, those before the start included
    late_seconds: float = 0.0  # how far behind its own plan this player was at most

    def play(self) -> None:
        """Until stdin ends."""
        self.begin = patient_transactions(self.engine)
        self.attempts = WorkerRequests(self.begin)
        now = time.monotonic()
        self.at(now + 1 / self.size.moves_a_second, "next move")
        self.at(now + COUNT_SECONDS, "count")
        for asker in range(self.size.askers):
            self.at(now + self.size.seconds * (0.3 + 0.02 * asker), "ask", asker)
        while not select.select([sys.stdin], [], [], 0)[0]:
            began = time.monotonic()
            self.take()
            self.happen(began)
            time.sleep(max(0.0, LOOK_SECONDS - (time.monotonic() - began)))

    def at(self, when: float, what: str, about: Any = None) -> None:
        heapq.heappush(self.events, (when, next(self.order), what, about))

    def happen(self, until: float) -> None:
        while self.events and self.events[0][0] <= until:
            when, _, what, about = heapq.heappop(self.events)
            self.late_seconds = max(self.late_seconds, time.monotonic() - when)
            if what == "over":
                self.over(about)
            elif what == "hold":
                self.hold(*about)
            elif what == "running":
                self.attempts.tell_phase(about.attempt, "running", "the kernel is up")
            elif what == "move":
                self.move()
            elif what == "next move":
                self.move()
                self.at(when + self.chance.expovariate(self.size.moves_a_second), "next move")
            elif what == "ask":
                self.ask(about)
            elif what == "count":
                self.count()
                self.at(when + COUNT_SECONDS, "count")

    def take(self) -> None:
        """Start what was dispatched; builds beyond the number of workers wait, as in Buildbot."""
        for row in self.fake.desk.dispatched("wanted"):
            with self.begin("dispatch placed") as tx:
                tx.dispatches.place(row.dispatch, row.dispatch, row.dispatch)
            if row.kind == "build":
                self.queue.append(row)
            else:
                self.start(row, self.size.boot_seconds)
        while self.queue and self.working < self.size.workers:
            self.working += 1
            self.start(self.queue.popleft(), self.size.build_seconds)

    def start(self, row: Dispatched, mean: float) -> None:
        now, seconds = time.monotonic(), mean * self.chance.uniform(0.5, 1.5)
        if row.kind == "boot":
            self.hold(row, now + seconds)
            self.attempts.tell_phase(row.attempt, "booting", "the kernel is loaded")
            self.at(now + 0.3 * seconds, "running", row)
        self.at(now + seconds, "over", row)

    def hold(self, row: Dispatched, until: float) -> None:
        self.attempts.wanted(row.attempt)
        self.attempts.hold(row.attempt, f"controller-of-{row.testbox}")
        following = time.monotonic() + ASK_SECONDS
        if following < until:
            self.at(following, "hold", (row, until))

    def over(self, row: Dispatched) -> None:
        self.fake.carry_out(row)
        self.fake.done.clear()
        self.done[row.kind] += 1
        self.working -= row.kind == "build"

    def move(self) -> None:
        """The branch that waited longest gets its next commits."""
        move_branch(self.repository, self.tips, self.moved)
        self.moved += 1

    def ask(self, asker: int) -> None:
        """A person compares the tip of a tree with its base, on the testboxes of the first tree.
        The first person asks for many such comparisons at once.
        """
        for tree in range(AT_ONCE if asker == 0 else 1):
            number = (asker * AT_ONCE + tree) % self.size.trees
            with self.lab.transaction("read tree") as tx:
                found, first = tx.trees.named(tree_name(number)), tx.trees.named(tree_name(0))
            if found is None or first is None or found.tip_commit in (None, found.base_commit):
                continue
            request = comparing(
                found.base_commit,
                found.tip_commit or "",
                tree=found.name,
                testboxes=first.testboxes,
                boots=2,
            )
            name = f"asker {asker}"
            try:
                # An operator, who has no quota.
                queued, _ = self.submitter.ask(a_person(self.engine, name, Role.OPERATOR), request)
            except RequestError as error:
                print(error, file=sys.stderr)
                continue
            self.asked.setdefault(name, []).append(queued.number)

    def count(self) -> None:
        with self.engine.connect() as conn:
            row = conn.execute(sa.text(_COUNT)).one()
        self.counts.append({**row._mapping, "queued_builds": len(self.queue)})
        print(json.dumps({**self.counts[-1], **self.done, "moved": self.moved}), flush=True)


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text())
    size = Size(**given["size"])
    settings = load(environ=given["environ"])
    engine = make_engine(settings.db.url)
    repository = Path(given["repository"])
    fake = FakeLab(
        desk=Desk(patient_transactions(engine)),
        artifacts=ArtifactDirectory(settings.artifacts),
        state=fakelinux_states(repository, settings.mirror),
        wobble=0.002,
        facts={"rootfs": "played"},
    )
    assert len(worker_names(size)) == size.workers
    lab = make_lab(settings, engine)
    submitter = DatabaseSubmitter(settings, engine, lambda: lab)
    player = Player(size, engine, lab, submitter, fake, repository, given["tips"])
    player.moved = given["moved"]
    player.play()
    facts = {
        "counts": player.counts,
        "done": player.done,
        "asked": player.asked,
        "moved": player.moved,
        "late_seconds": player.late_seconds,
        "cpu_seconds": time.process_time(),
    }
    Path(given["answer"]).write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
