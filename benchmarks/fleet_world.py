"""What the fleet benchmark is about: kernel trees in one repository, and testboxes in files."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from swingbot.core.model.records import JobFile, Tree
from swingbot.service.ports import Lab
from swingbot_db.store import transactions
from swingbot_jobs.contract.compiler import Compiler
from tests.fakelinux import START_SPEED

ROOT: Final = Path(__file__).parents[1]
MOVES: Final = 4  # that each branch has commits for
COMMITS: Final = 4  # of a move
GROUP: Final = 10  # testboxes of equal hardware
SLOW: Final = 0.9  # speed of a kernel after a planted regression, relative to before
TESTBOX: Final = """\
name: {name}
tbox_group: {group}
driver: command
command: {{argv: [/bin/false]}}
model: a machine that only this benchmark knows
nr_cpu: 1
memory_mb: 1024
boot_seconds: 60
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large the fleet is, and what it has to do. Times are in seconds."""

    testboxes: int
    workers: int
    trees: int
    boot_seconds: float  # mean; a boot takes between half and one and a half of it
    build_seconds: float  # the same
    testboxes_of_a_tree: int
    regressions: float  # share of the moves of branches that make the kernel slower
    load: float  # boots wanted by moves of branches, as a share of those that the testboxes can do
    seconds: float
    poll_seconds: float  # between two looks at a branch
    askers: int

    @property
    def moves_a_second(self) -> float:
        """How often any branch moves: each move boots both kernels three times per testbox."""
        boots_a_second = self.testboxes / self.boot_seconds
        return self.load * boots_a_second / (2 * 3 * self.testboxes_of_a_tree)

    @property
    def first_moves(self) -> int:
        """Branches that moved before the start: twice what gives each testbox something to do."""
        return min(self.trees, 2 * self.testboxes // self.testboxes_of_a_tree)


def testbox_name(number: int) -> str:
    return f"rack{number:04d}"


def tree_name(number: int) -> str:
    return f"tree{number:04d}"


def testboxes_of(tree: int, size: Size) -> list[str]:
    """Neighbours, so that each testbox serves about as many trees as any other."""
    count = min(size.testboxes_of_a_tree, size.testboxes)
    first = tree * size.testboxes // size.trees
    return [testbox_name((first + n) % size.testboxes) for n in range(count)]


def write_workers(folder: Path, size: Size) -> None:
    """A workers directory with the testboxes of this fleet only."""
    shutil.copytree(ROOT / "workers" / "kconfig", folder / "kconfig")
    (folder / "testboxes").mkdir()
    for number in range(size.testboxes):
        name = testbox_name(number)
        text = TESTBOX.format(name=name, group=f"group{number // GROUP:03d}")
        (folder / "testboxes" / f"{name}.yaml").write_text(text)


def make_repository(path: Path, size: Size, seed: int = 1) -> dict[str, list[str]]:
    """A bare repository with a branch a tree, all at one base. Returns the tips that each tree
    will move to, oldest first.
    """
    git(path.parent, "init", "-q", "--bare", "-b", "base", path.name)
    marks = path.parent / "marks"
    stream = "".join(_stream(size, random.Random(seed)))
    git(path, "fast-import", "--quiet", f"--export-marks={marks}", text=stream)
    commits = dict(line.split() for line in marks.read_text().splitlines())
    base = commits[":1"]
    branches = "".join(f"create refs/heads/{tree_name(n)} {base}\n" for n in range(size.trees))
    git(path, "update-ref", "--stdin", text=f"create refs/heads/base {base}\n{branches}")
    return {
        tree_name(tree): [
            commits[f":{2 + (tree * MOVES + move) * COMMITS + COMMITS - 1}"]
            for move in range(MOVES)
        ]
        for tree in range(size.trees)
    }


def _stream(size: Size, chance: random.Random) -> Iterator[str]:
    """Commits in the form of git fast-import: the base is mark 1, then each tree in turn."""
    yield _commit(1, None, _state(0, START_SPEED), {"Makefile": "", "Kconfig": "", "init/x.c": ""})
    mark = 1
    for _ in range(size.trees):
        speed, parent = float(START_SPEED), 1
        for _ in range(MOVES):
            slower = chance.randrange(COMMITS) if chance.random() < size.regressions else None
            for step in range(COMMITS):
                mark += 1
                speed *= SLOW if step == slower else 1.0
                yield _commit(mark, parent, _state(mark, speed), {})
                parent = mark


def _state(code: int, speed: float) -> dict[str, object]:
    return {"speed": speed, "code": code, "header": 0, "boots": True, "broken": False}


def _commit(mark: int, parent: int | None, state: dict[str, object], files: dict[str, str]) -> str:
    message = f"mm: change {mark}"
    lines = [
        "commit refs/made/all",
        f"mark :{mark}",
        f"committer A Developer <dev@example.org> {1_770_000_000 + mark} +0000",
        f"data {len(message)}",
        message,
        *([f"from :{parent}"] if parent else []),
    ]
    for name, content in {**files, "state.json": json.dumps(state)}.items():
        lines += [f"M 644 inline {name}", f"data {len(content)}", content]
    return "\n".join(lines) + "\n"


def move_branch(repository: Path, tips: dict[str, list[str]], number: int) -> None:
    """The `number`-th move of any branch, each in turn; nothing if the branch is at its end."""
    name = tree_name(number % len(tips))
    if tips[name]:
        git(repository, "update-ref", f"refs/heads/{name}", tips[name].pop(0))


def git(path: Path, *arguments: str, text: str | None = None) -> str:
    done = subprocess.run(
        ["git", "-C", str(path), *arguments], input=text, text=True, capture_output=True, check=True
    )
    return done.stdout


def register(lab: Lab, engine: sa.Engine, mirror: Path, repository: Path, size: Size) -> None:
    """What the fleet looks like when the measurement begins: trees that were polled before,
    testboxes that have shown their noise, and workers that said which compilers they have.
    """
    base = lab.tools.git.fetch_branch("first", str(repository), "base")
    git(mirror, "fetch", "-q", str(repository), "+refs/heads/tree*:refs/trees/tree*/tip")
    job = ROOT / "jobs" / "vm-page-fault.yaml"
    with lab.transaction("register") as tx:
        for number in range(size.trees):
            tx.trees.add(
                Tree(
                    id=0,
                    name=tree_name(number),
                    url=str(repository),
                    branch=tree_name(number),
                    base_commit=base,
                    tip_commit=None,
                    job_files=(JobFile(name=job.name, text=job.read_text()),),
                    testboxes=tuple(testboxes_of(number, size)),
                    paths=(),
                    kconfig="vm-x86_64",
                    compiler="gcc",
                )
            )
        for name in lab.catalogue.testboxes.present:
            tx.testboxes.lock(name)
            tx.testboxes.set_screened(name)
    with engine.begin() as conn:
        conn.execute(sa.text("UPDATE tree SET tip_commit = base_commit, polled_at = now()"))
    with transactions(engine)("compilers announced") as tx:
        for worker in worker_names(size):
            tx.compilers.announce(worker, [Compiler(name="gcc", version="gcc (played) 12.2")])


def worker_names(size: Size) -> Sequence[str]:
    return [f"builder{number:03d}" for number in range(size.workers)]
