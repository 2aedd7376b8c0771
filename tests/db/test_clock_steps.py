"""The database's clock is set forward and back while work is under way.

Setting it by a time is the same as moving every stored time by the opposite, which is what these
tests do: the loop's rounds, the stores and PostgreSQL are real.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from swingbot.core.model.testbox_state import LeaseHeld
from swingbot.service.clock_watch import ClockWatch
from swingbot.service.lab.watch_testboxes import SETTLE_SECONDS
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot_db import read
from tests.db.racks import attempt_of, compared, controlled, environment, rows, state, turn
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.mail import running_smtpd

HOUR, YEAR = 3600, 365 * 86_400
STEPS = pytest.mark.parametrize("step", [HOUR, -HOUR, YEAR, -YEAR])


@dataclass
class Clocks:
    """The clocks of a service: that of the database can be set, the other one cannot."""

    engine: sa.Engine
    passed: float = 0.0
    watch: ClockWatch = field(init=False)

    def __post_init__(self) -> None:
        self.watch = ClockWatch(lambda: time.monotonic() + self.passed)

    def move(self, *, passed: float = 0.0, step: float = 0.0) -> None:
        """Let time pass, and set the clock."""
        self.passed += passed
        if self.watch._seen is not None:
            clock, monotonic = self.watch._seen
            self.watch._seen = (clock - passed - step, monotonic)
        with self.engine.begin() as conn:
            conn.execute(sa.text("SET LOCAL session_replication_role = replica"))
            columns: dict[str, list[str]] = {}
            for table, column in conn.execute(
                sa.text(
                    "SELECT c.table_name, c.column_name FROM information_schema.columns c"
                    " JOIN information_schema.tables t USING (table_schema, table_name)"
                    " WHERE table_schema = 'swingbot' AND table_type = 'BASE TABLE'"
                    " AND data_type = 'timestamp with time zone' AND is_generated = 'NEVER'"
                )
            ):
                columns.setdefault(table, []).append(column)
            for table, names in columns.items():
                moved = ", ".join(f'"{n}" = "{n}" - make_interval(secs => :by)' for n in names)
                conn.execute(sa.text(f'UPDATE "{table}" SET {moved}'), {"by": passed + step})


@pytest.fixture
def clocks(engine: sa.Engine) -> Clocks:
    return Clocks(engine)


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine, clocks: Clocks) -> Iterator[Brain]:
    settings = load(environ=environment(tmp_path, db_url))
    repo = tmp_path / "linux"
    make_fakelinux(repo, [FakeCommit()])
    with running_smtpd(settings):
        made = make_brain(settings, engine, repo)
        clock = dataclasses.replace(
            made.lab.clock,
            database=clocks.watch,
            listening=lambda: SETTLE_SECONDS,
            awake=lambda: 1e9,
        )
        yield dataclasses.replace(made, lab=dataclasses.replace(made.lab, clock=clock))


def lease(brain: Brain) -> tuple[str, float]:
    """The controller of rack7, and for how many seconds it is valid."""
    (row,) = rows(
        brain,
        "SELECT holder, extract(epoch FROM until - clock_timestamp())::float AS rest FROM lease"
        " WHERE testbox = 'rack7'",
    )
    return row["holder"], row["rest"]


def etas(document: Any) -> list[float]:
    """All remaining times that a document states."""
    if isinstance(document, dict):
        own = [v for k, v in document.items() if k == "eta_seconds" and v is not None]
        return own + [eta for part in document.values() for eta in etas(part)]
    return [eta for part in document for eta in etas(part)] if isinstance(document, list) else []


@STEPS
def test_a_boot_under_way_keeps_its_testbox_and_counts_once(
    brain: Brain, clocks: Clocks, step: float
) -> None:
    name = compared(brain, "rack7")
    turn(brain)
    number, controller = attempt_of(brain), WorkerRequests(brain.lab.transaction)
    assert isinstance(held := controller.hold(number, "lab1"), LeaseHeld)
    turn(brain)
    clocks.move(step=step)
    turn(brain)  # before the controller reports again
    assert (attempt_of(brain), lease(brain)[0]) == (number, "lab1")
    assert 0 < lease(brain)[1] <= 300
    with brain.engine.connect() as conn:
        document = read.table(conn, int(name[1:]))
        assert document is not None
        assert all(eta >= 0 for eta in etas(json.loads(json.dumps(document, default=str))))
    assert isinstance(again := controller.hold(number, "lab1"), LeaseHeld)
    assert again.fence == held.fence
    assert 280 < lease(brain)[1] <= 300
    brain.run()
    (attempts,) = rows(
        brain,
        "SELECT count(*) AS n FROM attempt WHERE order_id ="
        " (SELECT order_id FROM attempt WHERE id = :a)",
        a=number,
    )
    twice = rows(brain, "SELECT order_id FROM boot GROUP BY order_id HAVING count(*) > 1")
    assert (attempts["n"], twice, state(brain)) == (1, [], "idle")
    (comparison,) = rows(brain, "SELECT status FROM comparison WHERE id = :c", c=int(name[1:]))
    assert comparison["status"] == "done"


@STEPS
def test_a_controller_that_is_gone_loses_its_testbox_within_minutes(
    brain: Brain, clocks: Clocks, step: float
) -> None:
    number = controlled(brain, "rack7")
    turn(brain)
    clocks.move(step=step)
    turn(brain)
    clocks.move(passed=310)
    turn(brain)
    (attempt,) = rows(brain, "SELECT state, reason FROM attempt WHERE id = :a", a=number)
    assert attempt["state"] == "dead"
    assert "its controller lab1 did not report for" in attempt["reason"]


def test_a_loop_that_was_down_when_the_clock_was_set_back_ends_the_old_lease(
    brain: Brain, clocks: Clocks
) -> None:
    number = controlled(brain, "rack7")
    clocks.move(step=-YEAR)
    clocks.watch._seen = None  # another process, which did not see the step
    turn(brain)
    (attempt,) = rows(brain, "SELECT state, reason FROM attempt WHERE id = :a", a=number)
    assert attempt["state"] == "dead"
    assert "did not report since the clock was set back" in attempt["reason"]


@STEPS
def test_an_order_is_tried_again_after_the_clock_was_set(
    brain: Brain, clocks: Clocks, step: float
) -> None:
    compared(brain, "rack7")
    turn(brain)
    first = attempt_of(brain)
    brain.fake.infra = 1
    assert brain.fake.work() == 1
    clocks.move(step=step)
    turn(brain)
    clocks.move(passed=600)
    turn(brain)
    assert attempt_of(brain) > first
    brain.run()
    assert state(brain) == "idle"
