"""A whole lab in memory: the store, kernels that are as fast as a test says,
and workers that answer at once.

For tests of use cases: a round of the brain takes milliseconds, and nothing is written to a disk.
"""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from swingbot.core.model.artifact import Pruned
from swingbot.core.model.records import CommitFacts, Order
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.service.ports import (
    Artifacts,
    Catalogue,
    Clock,
    Git,
    GitError,
    Lab,
    LabSettings,
    Tools,
)
from swingbot.service.tick import tick
from swingbot_jobs.contract.kconfig import Kconfigs
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.language.program import Program, load_programs
from swingbot_jobs.testbox.definition import Testbox
from tests.contract.store.world import a_testbox, facts_of
from tests.fakes.kernels import KernelRecordsHere
from tests.fakes.lab import run_files, tar
from tests.fakes.store import MemoryStore

JOBS: Final = Path(__file__).parents[2] / "jobs"
MOST_ROUNDS: Final = 200


@cache
def _programs() -> dict[str, Program]:
    return dict(load_programs(JOBS / "programs"))


class LinearGit:
    """Commits 0, 1, 2, ... on one branch; each changes one file of its own."""

    def facts(self, commit: str) -> CommitFacts:
        return facts_of(int(commit, 16) - 1)

    def message(self, commit: str) -> str:
        return f"{self.facts(commit).subject}\n"

    def is_ancestor(self, old: str, new: str) -> bool:
        return int(old, 16) <= int(new, 16)

    def paths_along(self, good: str, bad: str) -> dict[str, tuple[str, ...]]:
        numbers = range(int(good, 16) + 1, int(bad, 16) + 1)
        return {f"{number:040x}": (f"mm/{number}.c",) for number in numbers}

    def paths_between(self, old: str, new: str) -> tuple[str, ...]:
        return tuple(path for paths in self.paths_along(old, new).values() for path in paths)

    def patch_ids(self, commits: Sequence[str]) -> dict[str, str]:
        return {commit: commit for commit in commits}

    def resolve(self, tree: str, ref: str) -> str:
        raise GitError(f"no commit {ref}")

    resolve_remote = without = resolve


@dataclass
class MemoryArtifacts:
    files: dict[str, bytes] = field(default_factory=dict)

    def open(self, sha256: str) -> BinaryIO:
        if sha256 not in self.files:
            raise FileNotFoundError(sha256)
        return io.BytesIO(self.files[sha256])

    def pruned(self, sha256: str) -> Pruned | None:
        return None

    def put(self, content: bytes) -> dict[str, Any]:
        sha256 = hashlib.sha256(content).hexdigest()
        self.files[sha256] = content
        return {"sha256": sha256, "size": len(content)}


@dataclass
class MemoryLab:
    """`speeds` by commit (1.0 for others), `broken` do not compile, `hung` do not boot.

    `infra` attempts are lost to the lab first. `levels` are those of testboxes (1.0 for others).

    Commits of `alike` give the image that the commit named there gives. `spreads` are the relative
    spreads of the boots of commits, each boot with its own draw (0 for others).
    """

    speeds: dict[str, float] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    hung: set[str] = field(default_factory=set)
    infra: int = 0
    levels: dict[str, float] = field(default_factory=dict)
    alike: dict[str, str] = field(default_factory=dict)
    spreads: dict[str, float] = field(default_factory=dict)
    testboxes: tuple[str, ...] = ("box",)
    store: MemoryStore = field(default_factory=MemoryStore)
    artifacts: MemoryArtifacts = field(default_factory=MemoryArtifacts)

    def __post_init__(self) -> None:
        self.lab = Lab(
            transaction=self.store.transaction,
            tools=Tools(
                git=cast(Git, LinearGit()),
                artifacts=cast(Artifacts, self.artifacts),
                kernels=KernelRecordsHere(self.artifacts.open),
            ),
            catalogue=Catalogue(
                testboxes=KnownTestboxes(
                    present={name: a_testbox(name) for name in self.testboxes}
                ),
                programs=_programs(),
                parsers={},
                kconfigs=Kconfigs({"vm-x86_64": "CONFIG_X=y\n"}),
            ),
            settings=LabSettings(
                watch_boots=3,
                watch_testbox=self.testboxes[0],
                bisect_improvements=False,
                idle_aa_seconds=0.0,
                confidence=0.95,
                max_boots=60,
                sender="swingbot@example.org",
                recipients=("lab@example.org",),
                still_days=7.0,
                contact="lab@example.org",
                domain="example.org",
                web_url="http://localhost",
                deadline_build=3600.0,
                proof_gates=(),
                proof_require=(),
                proof_deadline_seconds=3600.0,
                proof_budget_seconds=0.0,
                merged_trees=(),
            ),
            clock=Clock(now=self.store.db.now),
        )

    def boot_on(self, testboxes: Iterable[Testbox]) -> None:
        """Replace the testboxes of the lab."""
        known = KnownTestboxes(present={testbox.name: testbox for testbox in testboxes})
        self.lab = replace(self.lab, catalogue=replace(self.lab.catalogue, testboxes=known))

    def run(self) -> int:
        """Rounds of the brain, with workers between them, until nothing is left to do.

        How many there were.
        """
        for rounds in range(1, MOST_ROUNDS):
            tick(self.lab)
            worked = self.work()
            self.store.pass_time(600.0)  # an order that failed is tried again after a while
            with self.store.transaction() as tx:
                idle = not (tx.orders.open() or tx.comparisons.open() or tx.bisections.running())
            if idle and not worked:
                return rounds
        raise AssertionError("the brain does not come to rest")

    def work(self, but: Collection[str] = ()) -> int:
        """Carry out all that is handed out, but no build of the commits `but`.

        Says how much that was.
        """
        open_ = [
            row
            for row in self.store.db.dispatches.values()
            if row.state != "over" and not self._builds(row.attempt, but)
        ]
        for dispatch in open_:
            attempt = self.store.db.attempts[dispatch.attempt]
            order = self.store.db.orders[attempt.order].order
            with self.store.transaction() as tx:
                tx.attempts.end(attempt.id, self._outcome(order))
                tx.dispatches.close(dispatch.id, "success")
        return len(open_)

    def _builds(self, attempt: int, commits: Collection[str]) -> bool:
        order = self.store.db.orders[self.store.db.attempts[attempt].order].order
        return order.kind == "build" and self.store.db.variants[order.variant].commit in commits

    def _outcome(self, order: Order) -> dict[str, Any]:
        head: dict[str, Any] = {"kind": order.kind, "seconds": 1.0, "files": {}}
        if self.infra:
            self.infra -= 1
            return {**head, "status": "infra", "reason": "the disk is full"}
        return head | (self._build(order) if order.kind == "build" else self._boot(order))

    def _build(self, order: Order) -> dict[str, Any]:
        variant = self.store.db.variants[order.variant]
        build = {
            "build_key": order.build_key,
            "compiler_version": "gcc 12",
            "cached": False,
        }
        if variant.commit in self.broken:
            why = "mm/x.c:1: error: this does not compile"
            return {"status": "failed", "reason": why, "kernel_build": {**build, "errors": [why]}}
        code = self.alike.get(variant.commit, variant.commit)
        image = self.artifacts.put(f"{code} {variant.layout}".encode())
        return {
            "status": "built",
            "files": {"bzImage": image},
            "kernel_build": {**build, "image_sha256": image["sha256"]},
        }

    def _boot(self, order: Order) -> dict[str, Any]:
        commit = self.store.db.variants[order.variant].commit
        if commit in self.hung:
            return {"status": "hung", "reason": "the guest said nothing"}
        files: dict[str, bytes] = {}
        drawn = random.Random(f"{commit} {order.purpose} {order.k}").gauss(0.0, 1.0)
        for job in self.store.db.specs[order.spec or ""]:
            for number in job.numbers:
                rate = 1e5 * self.speeds.get(commit, 1.0) * _wobble(order.k or 0, number)
                rate *= self.levels.get(order.testbox or "", 1.0)
                rate *= 1.0 + self.spreads.get(commit, 0.0) * drawn
                files |= run_files(f"{job.name}/{number}", rate, _tasks(job))
        results = self.artifacts.put(tar(files))
        return {
            "status": "up",
            "facts": {"uname": "6.1.0-fake"},
            "files": {"results.tar": results},
        }


def _tasks(job: UnitJob) -> int:
    return int(job.params.get("nr_task", "1"))


def _wobble(k: int, number: int) -> float:
    """The same for all kernels at the same boot and run."""
    return (1 + 0.002 * ((k * 7919) % 11 - 5)) * (1 + 0.0003 * number)
