"""A lab with two interchangeable bare-metal testboxes, and helpers for tests of testboxes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.service.tick import tick
from swingbot_db import read
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import JOB, Loop
from tests.fakes.mail import brain_environment
from tests.table_requests import compare

ROOT = Path(__file__).parents[2]
RACK = """\
name: {name}
tbox_group: {group}
driver: command
command: {{argv: [/bin/false]}}
model: a machine that only these tests know
nr_cpu: 1
memory_mb: 1024
"""


def workers(folder: Path, **groups: str) -> Path:
    """A workers directory with bare-metal testboxes in addition to the virtual ones.

    `groups`: testbox name -> its tbox_group.
    """
    shutil.copytree(ROOT / "workers" / "testboxes", folder / "testboxes")
    shutil.copytree(ROOT / "workers" / "kconfig", folder / "kconfig")
    for name, group in groups.items():
        (folder / "testboxes" / f"{name}.yaml").write_text(RACK.format(name=name, group=group))
    return folder


def environment(tmp_path: Path, db_url: str, boots: int = 0) -> dict[str, str]:
    """Bare-metal testboxes that need `boots` anchor boots before their results count.

    rack7 and rack8 are interchangeable.
    """
    folder = tmp_path / "workers"
    found = folder if folder.is_dir() else workers(folder, rack7="rack", rack8="rack")
    return brain_environment(tmp_path / "state", db_url) | {
        "SWINGBOT_PATHS_WORKERS": str(found),
        "SWINGBOT_TESTBOXES_SCREENING_BOOTS": str(boots),
    }


def measured_brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Brain:
    """A brain on a fakelinux of one more commit, whose testboxes measure with some noise."""
    repo = tmp_path / "linux"
    make_fakelinux(repo, [FakeCommit()])
    brain = make_brain(load(environ=environment(tmp_path, db_url)), engine, repo)
    brain.fake.origin, brain.fake.wobble = "measured", 0.004
    return brain


def compared(brain: Loop, *testboxes: str) -> str:
    """Request a comparison of the tip with its parent on `testboxes`, with both kernels built.

    Returns the comparison's id.
    """
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    brain.watch(base, testboxes=["vm-icount"])

    def asked(*names: str) -> str:
        wish: dict[str, Any] = {"job_files": [JOB], "testboxes": names, "boots": 1}
        return f"c{compare(brain.lab, f'{base}~1', base, **wish)}"

    asked("vm-icount")
    brain.run()
    return asked(*testboxes)


def turn(brain: Loop, times: int = 1) -> None:
    """Tick without a working lab: orders are dispatched, and no results arrive."""
    for _ in range(times):
        tick(brain.lab)


def rows(brain: Brain, query: str, **values: Any) -> list[dict[str, Any]]:
    with brain.engine.connect() as conn:
        return [dict(row) for row in conn.execute(sa.text(query), values).mappings()]


def change(brain: Brain, statement: str, **values: Any) -> None:
    with brain.engine.begin() as conn:
        conn.execute(sa.text(statement), values)


def facts_of(brain: Brain, name: str = "rack7") -> dict[str, Any]:
    with brain.engine.connect() as conn:
        found: dict[str, Any] = read.testbox(conn, name)
        return found


def state(brain: Brain, name: str = "rack7") -> str:
    return str(facts_of(brain, name)["now"]["state"])


def sent(brain: Brain) -> list[str]:
    brain.send()
    return [subject.removeprefix("[swingbot] ") for subject in brain.mails]


def attempt_of(brain: Brain, name: str = "rack7") -> int:
    (row,) = rows(brain, "SELECT attempt FROM lease WHERE testbox = :name", name=name)
    return int(row["attempt"])


def controlled(brain: Brain, name: str) -> int:
    """A boot on testbox `name` that controller lab1 works for; its attempt."""
    compared(brain, name)
    turn(brain)
    number = attempt_of(brain, name)
    WorkerRequests(brain.lab.transaction).hold(number, "lab1")
    return number


def lapse(brain: Brain, name: str = "rack7") -> None:
    change(
        brain,
        "UPDATE lease SET until = clock_timestamp() - interval '12 s' WHERE testbox = :name",
        name=name,
    )


def fail(brain: Loop) -> None:
    """End the dispatched boot as an infrastructure failure."""
    brain.fake.infra = 1
    assert brain.fake.work() == 1
    turn(brain)


def ready_again(brain: Brain) -> None:
    """End abandoned dispatches, skip the pause between two attempts, and dispatch."""
    change(
        brain,
        "UPDATE dispatch SET state = 'over', result = 'cancelled', ended_at = now() WHERE "
        "state <> 'over' AND attempt IN"
        " (SELECT id FROM attempt WHERE state <> 'running')",
    )
    change(
        brain,
        "UPDATE attempt SET ended_at = ended_at - interval '1 hour' WHERE ended_at IS NOT NULL",
    )
    turn(brain)
