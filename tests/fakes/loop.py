"""A loop without its process: the brain ticks and a fake lab works until nothing moves any more."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swingbot.core.model.records import JobFile
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.service.bisect.ask import prepared
from swingbot.service.bisect.request import BisectionRequest
from swingbot.service.lab.load_testboxes import load_testboxes
from swingbot.service.ports import Lab
from swingbot.service.tick import tick
from swingbot.service.watch.trees import NewTree, add_tree, poll_tree
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.lab import FakeLab

JOB = JobFile(
    name="vm-page-fault.yaml",
    text=(Path(__file__).parents[2] / "jobs" / "vm-page-fault.yaml").read_text(),
)
METRIC = "page-fault.per_process_ops"
MOST_ROUNDS = 400


class NoRest(AssertionError):
    """Something is open and nothing happens."""


@dataclass(kw_only=True)
class Loop:
    """Rounds on the kernels of a fakelinux repository; stores differ in what is below."""

    lab: Lab
    fake: FakeLab
    repo: Path

    def run(self) -> None:
        """Rounds until nothing moves any more. Raises NoRest."""
        for _ in range(MOST_ROUNDS):
            tick(self.lab)
            self.send()
            if self.fake.work() == 0 and self.idle():
                return
        raise NoRest("the brain does not come to rest")

    def rounds(self, number: int) -> None:
        for _ in range(number):
            tick(self.lab)
            self.fake.work()

    def send(self) -> None:
        """Send the mails that are due."""
        raise NotImplementedError

    def idle(self) -> bool:
        """Whether no round would do anything any more."""
        raise NotImplementedError

    def without(self, testbox: str) -> Lab:
        """The lab as it is once the file of this testbox is gone."""
        present = dict(self.lab.catalogue.testboxes.present)
        del present[testbox]
        catalogue = dataclasses.replace(
            self.lab.catalogue, testboxes=KnownTestboxes(present=present)
        )
        return dataclasses.replace(
            self.lab, catalogue=load_testboxes(self.lab.transaction, catalogue)
        )

    def set(self, **settings: Any) -> None:
        """Change settings that decisions depend on."""
        changed = dataclasses.replace(self.lab.settings, **settings)
        self.lab = dataclasses.replace(self.lab, settings=changed)

    @property
    def base(self) -> str:
        """The commit that is the tip of the repository now."""
        return self.lab.tools.git.fetch_branch("base", str(self.repo), "main")

    def commit(self, *made: FakeCommit) -> list[str]:
        return add_commits(self.repo, made)

    def git(self, *words: str) -> str:
        """Run git in the repository; what it printed."""
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        command = ["git", "-C", str(self.repo), *identity, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def merge(
        self,
        main: Sequence[FakeCommit],
        side: Sequence[FakeCommit],
        after: Sequence[FakeCommit],
        clean: bool = True,
    ) -> tuple[str, str, list[str]]:
        """main-line commits, then a merge of a branch that left before them, then more. Returns
        (base, merge, ids of the branch). A merge that is not `clean` is slow by itself."""
        base = self.git("rev-parse", "HEAD")
        self.git("checkout", "-q", "-b", "side")
        branch = self.commit(*side)
        self.git("checkout", "-q", "main")
        self.commit(*main)
        state = json.loads((self.repo / "state.json").read_text())
        other = json.loads(self.git("show", "side:state.json"))
        self.git("merge", "-q", "--no-commit", "-s", "ours", "side")
        # What both sides did together: the branch's speed if it changed it, and the counters.
        both = state | {
            "number": state["number"] + 100,
            "code": state["code"] + other["code"],
            "speed": min(state["speed"], other["speed"]) if clean else 80,
        }
        (self.repo / "state.json").write_text(json.dumps(both) + "\n")
        self.git("commit", "-q", "-a", "-m", "Merge branch 'side'")
        merge = self.git("rev-parse", "HEAD")
        self.commit(*after)
        return base, merge, branch

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
        assert poll_tree(self.lab.transaction, self.lab.tools.git, tree) is None

    def poll(self) -> None:
        with self.lab.transaction("read") as tx:
            (tree,) = tx.trees.all()
        assert poll_tree(self.lab.transaction, self.lab.tools.git, tree) is None

    def bisect(self, good: str, bad: str, **more: Any) -> int:
        """A bisection by hand."""
        wanted = {"tree": "fake", "good": good, "bad": bad, "metric": METRIC, "job_files": []}
        request = BisectionRequest(**(wanted | {"testbox": None} | more))
        with prepared(self.lab, request) as bisection:
            return bisection.queue(0.0).number


def plain(number: int, title: str = "") -> list[FakeCommit]:
    """Commits that change nothing that is measured."""
    return [FakeCommit(title=f"{title} {i}" if title else None) for i in range(number)]
