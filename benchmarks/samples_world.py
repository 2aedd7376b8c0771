"""Trees, testboxes and boots that the benchmark of samples fills in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from swingbot.app.settings import Settings, load
from swingbot.app.wiring import make_lab
from swingbot.service.ports import Lab
from swingbot_db.migrate import upgrade
from tests import builders as make

RUNS = 5  # of a unit job in a boot
JOBS = ("hackbench-pipe-8-process-100%", "hackbench-socket-8-process-100%")
TESTBOXES = ("vm-icount", "vm-tcg")
TREE = "mm-demo"  # the first one
BOOTS_OF_A_COMMIT = 10  # on both testboxes together
_COMMITS = """SELECT v.id AS variant, v.commit, v.build_key, b.image_sha256 AS image
FROM variant v JOIN kernel_build b USING (build_key) ORDER BY v.id"""


@dataclass
class World:
    """Trees whose commits are measured in turn, each on two testboxes."""

    engine: sa.Engine
    settings: Settings
    lab: Lab
    trees: list[int]
    testboxes: list[make.Testbox]
    commits: list[make.Kernel]
    boots: int = 0

    def next_boot(
        self, conn: sa.Connection, outcome: Callable[[int], Mapping[str, Any]]
    ) -> tuple[int, int, Mapping[str, Any]]:
        """(order, attempt, outcome) of one more boot whose outcome came."""
        number, self.boots = self.boots, self.boots + 1
        commit, k = divmod(number, BOOTS_OF_A_COMMIT)
        if commit == len(self.commits):
            self.commits.append(
                make.a_kernel(
                    conn,
                    self.trees[commit % len(self.trees)],
                    commit // len(self.trees),
                    at=make.START + timedelta(hours=commit),
                )
            )
        first = len(TESTBOXES) * (commit % len(self.trees))
        order = make.an_order(
            conn,
            self.commits[commit],
            self.testboxes[(first + k % len(TESTBOXES)) % len(self.testboxes)],
            k=k // len(TESTBOXES),
            state="running",
        )
        result = outcome(order)
        return order, make.an_attempt(conn, order, outcome=result), result


def a_world(engine: sa.Engine, state: Path, trees: int, testboxes: int) -> World:
    """The world in a database, which is filled with trees and testboxes if it is new."""
    upgrade(engine)
    settings = load(environ={"SWINGBOT_PATHS_STATE": str(state)})
    lab = make_lab(settings, engine)
    with engine.begin() as conn:
        known = conn.execute(sa.text("SELECT name FROM testbox")).all()
        names = [row.name for row in known] or [
            TESTBOXES[n] if n < len(TESTBOXES) else f"rack{n:04d}" for n in range(testboxes)
        ]
        names.sort(key=lambda name: (name not in TESTBOXES, name))
        made = [
            make.a_testbox(conn, name, unit_job=JOBS[0], also=JOBS[1:], runs=RUNS) for name in names
        ]
        numbers = [row.id for row in conn.execute(sa.text("SELECT id FROM tree ORDER BY id"))] or [
            make.a_tree(conn, TREE if n == 0 else f"tree{n:04d}") for n in range(trees)
        ]
        commits = conn.execute(sa.text(_COMMITS)).all()
        boots = conn.execute(sa.text("SELECT count(*) FROM boot")).scalar_one()
    kernels = [make.Kernel(**row._mapping) for row in commits]
    return World(engine, settings, lab, numbers, made, kernels, boots)


def an_outcome(order: int, results: Mapping[str, Any] | None = None) -> dict[str, Any]:
    files = {"results.tar": results} if results else {}
    return {
        "version": 1,
        "kind": "boot",
        "order": f"o{order}",
        "attempt": "a0",
        "status": "up",
        "seconds": 60.0,
        "files": files,
        "facts": {"rootfs": "bench"},
    }
