"""A round of the loop asks the database as often for a large fleet as for a small one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.service.tick import tick
from swingbot_db.engine import make_engine
from tests.db.racks import compared, environment, turn, workers
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import JOB
from tests.table_requests import compare


def a_fleet(root: Path, url: str, racks: int) -> Brain:
    """Bare-metal testboxes rack0, rack1, ... that have shown their noise."""
    root.mkdir()
    (root / "workers").mkdir()
    workers(root / "workers", **{f"rack{number}": "rack" for number in range(racks)})
    make_fakelinux(root / "linux", [FakeCommit()])
    settings = load(environ=environment(root, url, boots=10))
    brain = make_brain(settings, make_engine(url), root / "linux")
    with brain.lab.transaction("show noise") as tx:
        for name in brain.lab.catalogue.testboxes.present:
            tx.testboxes.lock(name)
            tx.testboxes.set_screened(name)
    return brain


def statements_of_a_quiet_round(brain: Brain) -> list[str]:
    """What a round asks that has nothing new to decide."""
    turn(brain, 3)
    asked: list[str] = []

    def note(*call: object) -> None:
        asked.append(str(call[2]).partition("\n")[0])

    sa.event.listen(brain.engine, "before_cursor_execute", note)
    tick(brain.lab)
    sa.event.remove(brain.engine, "before_cursor_execute", note)
    return asked


def test_an_idle_testbox_costs_no_statement(
    tmp_path: Path, fresh_databases: Callable[[], str]
) -> None:
    small = a_fleet(tmp_path / "small", fresh_databases(), racks=1)
    large = a_fleet(tmp_path / "large", fresh_databases(), racks=9)
    assert statements_of_a_quiet_round(small) == statements_of_a_quiet_round(large)


def test_a_testbox_at_work_and_an_open_comparison_cost_no_statement(
    tmp_path: Path, db_url: str
) -> None:
    brain = a_fleet(tmp_path / "lab", db_url, racks=6)
    compared(brain, "rack0")
    one = statements_of_a_quiet_round(brain)
    assert brain.count("lease") == 1
    for number in range(1, 6):
        racks = [f"rack{number}"]
        compare(brain.lab, "base~1", "base", job_files=[JOB], testboxes=racks, boots=2)
    six = statements_of_a_quiet_round(brain)
    assert brain.count("lease") == 6
    assert one == six
