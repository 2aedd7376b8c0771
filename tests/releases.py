"""A tree with three releases and commits between them, measured on two testboxes by two tests, for
tests of what browses everything measured. The commits are in a real repository.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from tests import builders as make

TREE: Final = "stable"
HACKBENCH_JOB, HACKBENCH = "hackbench-process-pipe-100%", "hackbench.throughput"
# v6.1.110, four commits, v6.1.111, four commits, v6.1.112; one commit of each four is slower.
SUBJECTS: Final = (
    "Linux 6.1.110",
    "mm: rename a local in rmqueue_bulk()",
    "mm/page_alloc: drain the per-CPU lists on low high-order frees",
    "mm/slub: tidy a debug message",
    "mm/readahead: name a constant",
    "Linux 6.1.111",
    "mm/rmap: comment on a lock",
    "mm/vmstat: " + "a subject that somebody forgot to wrap, " * 12 + "and its end",
    "mm/filemap: drop a redundant check",
    "mm/swap: say why the order matters",
    "Linux 6.1.112",
)
CULPRIT: Final = 2
RELEASES: Final = (0, 5, 10)
_ROBOT: Final = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (
        ("NAME", "A Developer"),
        ("EMAIL", "dev@example.org"),
        ("DATE", "2026-03-02T09:00:00Z"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """What was made: numbers and ids for a test to name."""

    tree: int
    commits: Sequence[str]
    kernels: Mapping[int, make.Kernel]
    icount: make.Testbox
    noisy: make.Testbox
    incident: int
    comparison: int


def history_in(mirror: Path) -> list[str]:
    """Commit SUBJECTS one after the other into a bare repository; return the commits."""
    mirror.mkdir(parents=True)

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(mirror), *words],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, **_ROBOT},
        )
        return done.stdout.strip()

    git("init", "--quiet", "--bare")
    empty, commits = git("hash-object", "-w", "-t", "tree", "/dev/null"), list[str]()
    for subject in SUBJECTS:
        parent = ["-p", commits[-1]] if commits else []
        commits.append(git("commit-tree", empty, *parent, "-m", subject))
    git("update-ref", f"refs/trees/{TREE}/tip", commits[-1])
    return commits


def level(number: int) -> float:
    """Operations per second of commit `number`: 18 % fewer from the culprit on."""
    return 246_000.0 * (0.82 if number >= CULPRIT else 1.0)


def measured(number: int, k: int) -> dict[tuple[str, str], list[float]]:
    """What a boot reports: one benchmark, its counters, and another benchmark."""
    fault = level(number) * (1 + 0.0015 * make.spread(k))
    hack = 9_120.0 * (1 + 0.002 * make.spread(k + 3))
    return {
        (make.UNIT_JOB, make.METRIC): [
            round(fault * (1 + 0.0008 * make.spread(k, run)), 1) for run in range(3)
        ],
        (make.UNIT_JOB, "perf-stat.instructions"): [
            round(5.1e9 * 246_000 / fault * (1 + 1e-4 * make.spread(k, run))) for run in range(3)
        ],
        (HACKBENCH_JOB, HACKBENCH): [
            round(hack * (1 + 0.001 * make.spread(k, run)), 2) for run in range(3)
        ],
    }


def three_releases(conn: sa.Connection, mirror: Path) -> Releases:
    """vm-icount has booted every commit, vm-tcg the first two releases, in different requests."""
    commits = history_in(mirror)
    tree = make.a_tree(
        conn,
        TREE,
        base_commit=commits[0],
        tip_commit=commits[-1],
        job_files=make.Json([{"name": "vm-page-fault.yaml", "text": ""}]),
    )
    facts = {"nr_cpu": 1, "memory": "512M", "driver": "qemu"}
    repeatable = facts | {"name": "vm-icount", "label": "emulated", "repeatable": True}
    icount = make.a_testbox(conn, "vm-icount", also=[HACKBENCH_JOB], facts=repeatable)
    noisy = make.a_testbox(conn, "vm-tcg", unit_job=HACKBENCH_JOB)
    kernels = {
        number: make.a_kernel(conn, tree, commit, subject=SUBJECTS[number])
        for number, commit in enumerate(commits)
    }
    for number, kernel in kernels.items():
        for k in range(4 if number in RELEASES else 2):
            at = make.START + timedelta(minutes=10 * number + k)
            make.a_boot(conn, icount, kernel, k=k, values=measured(number, k), at=at)
    for old, new in ((0, 5), (5, 10)):
        make.a_change(conn, tree, commits[old], commits[new])
    comparison = _watched(conn, tree, kernels, icount)
    for number, series in ((0, 90), (5, 91)):
        for k in range(5):
            value = 8_000.0 * (1 + 0.01 * make.spread(k, number)) * (0.9 if number else 1.0)
            at = make.START + timedelta(days=number, minutes=k)
            make.a_boot(
                conn, noisy, kernels[number], k=k, series=f"c{series}", at=at,
                values={HACKBENCH: [value, value * 1.002, value * 0.999]},
            )  # fmt: skip
    return Releases(
        tree=tree,
        commits=commits,
        kernels=kernels,
        icount=icount,
        noisy=noisy,
        incident=_incident(conn, tree, kernels, icount),
        comparison=comparison,
    )


def _watched(
    conn: sa.Connection, tree: int, kernels: Mapping[int, make.Kernel], testbox: make.Testbox
) -> int:
    comparison = make.a_comparison(
        conn, tree, kernels[0], kernels[5], [testbox], kind="watch", boots=4
    )
    sides = [[sum(measured(n, k)[testbox.unit_job, make.METRIC]) / 3 for k in range(4)]
             for n in (0, 5)]  # fmt: skip
    make.a_row(conn, comparison, testbox, base=sides[0], head=sides[1], headline=True)
    make.a_swing(conn, comparison, testbox, state="explained")
    return comparison


def _incident(
    conn: sa.Connection, tree: int, kernels: Mapping[int, make.Kernel], testbox: make.Testbox
) -> int:
    culprit = {"commit": kernels[CULPRIT].commit, "subject": SUBJECTS[CULPRIT]}
    conclusion = {
        "status": "culprit",
        "culprit": culprit,
        "culprits": [culprit | {"probability": 0.99, "change_pct": -18.0}],
        "probability": 0.99,
        "change_pct": -18.0,
        "interval_pct": [-18.3, -17.7],
        "candidates": [culprit | {"probability": 0.99, "state": "culprit"}],
    }
    bisection = make.a_bisection(
        conn,
        tree,
        testbox,
        [kernels[number] for number in range(6)],
        status="culprit",
        conclusion=conclusion,
    )
    return make.an_incident(conn, tree, kernels[CULPRIT], bisections=[bisection])
