"""What a guest writes into its results decides neither how many rows there are nor whether a view
answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
import sqlalchemy as sa

from swingbot.core.results import metric_names
from swingbot.core.table import strongest
from swingbot.service.ports import Transaction
from swingbot.service.table import judge
from swingbot_db import read
from tests.fakelinux import FakeCommit, add_commits
from tests.fakes.brain import Brain
from tests.fakes.guest import Guest, a_guest, counts, random_names, read_whole, views
from tests.programs import PROGRAMS
from tests.table_requests import compare

METRIC = "page-fault.per_process_ops"
BUDGET = 400
COUNTERS = 60


@pytest.fixture
def guest(brain: Brain) -> Iterator[Guest]:
    with a_guest(brain) as guest:
        yield guest


@pytest.mark.parametrize(
    ("value", "kept"), [(1e155, False), (9e299, False), (1e100, False), (9.9e99, True)]
)
def test_every_view_answers_whatever_a_counter_says(guest: Guest, value: float, kept: bool) -> None:
    guest.add = counts(f"{value:f}", f"-{value:f}", f"{1e-320:.330f}", "0")
    number = guest.compare()
    answers = {view: read_whole(guest.brain.engine, view) for view in views(guest.brain.engine)}
    assert answers["v_metric_over_commits"] > 0
    metrics = {row["metric"] for row in guest.brain.facts("c", number)["rows"]}
    assert metrics >= {METRIC}
    assert ("perf-stat.event-0" in metrics) is kept
    reasons = "SELECT count(*) FROM run WHERE reason LIKE 'counters left out: perf stat gives%'"
    with guest.brain.engine.connect() as conn:
        assert bool(conn.execute(sa.text(reasons)).scalar_one()) is not kept


def test_no_sample_is_beyond_the_limit(engine: sa.Engine, conn: sa.Connection) -> None:
    beyond = "INSERT INTO sample (run, measured, value) VALUES (1, 1, 1e100)"
    with pytest.raises(sa.exc.IntegrityError, match="sample_value_check"):
        conn.execute(sa.text(beyond))


def test_names_that_a_guest_makes_up_are_at_most_the_budget(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metric_names, "METRIC_NAMES", BUDGET)
    guest.add = random_names(BUDGET // 4 - 1)
    number = guest.compare()
    engine = guest.brain.engine
    with engine.connect() as conn:
        names = conn.execute(sa.text("SELECT count(*) FROM measured_metric")).scalar_one()
        left_out = "SELECT count(*) FROM run WHERE reason LIKE '%left out%' AND status = 'ok'"
        runs = conn.execute(sa.text(left_out)).scalar_one()
        testbox = read.testbox(conn, "vm-icount")
        problems = [problem["text"] for problem in read.status(conn)["problems"]]
    assert BUDGET - BUDGET // 4 < names <= BUDGET + len(PROGRAMS["page-fault"].metrics)
    assert runs == 16
    (why,) = testbox["left_out"]
    assert re.search(
        r" in boot x8: interrupts left out: it has \d+ new metric names, and \d+ of 400 are left;"
        r" .*; its raw results are kept$",
        why,
    )
    assert f"testbox vm-icount: {why}" in problems
    rows = {row["metric"]: row for row in guest.brain.facts("c", number)["rows"]}
    assert (rows[METRIC]["verdict"], rows[METRIC]["base"]["runs"]) == ("worse", 8)


def test_orders_leave_while_a_large_table_is_judged(
    guest: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "HAND_OUT_ROWS", 10)
    monkeypatch.setattr(strongest, "JUDGED_COUNTERS", COUNTERS)
    guest.add = counts(*["7"] * (3 * COUNTERS))
    brain = guest.brain
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    heads = add_commits(brain.repo, [FakeCommit(speed=90), FakeCommit(speed=80)])
    first, second = (compare(brain.lab, base, head, boots=2) for head in heads)
    events: list[str] = []
    begin, handed_out = brain.lab.transaction, brain.fake.desk.dispatched

    def recorded(name: str) -> AbstractContextManager[Transaction]:
        boots = sum(one.kind == "boot" for one in handed_out("wanted"))
        events.append(f"{name}: {boots}")
        return begin(name)

    monkeypatch.setattr(brain, "lab", replace(brain.lab, transaction=recorded))
    brain.run()
    assert brain.facts("c", second)["status"] == "done"
    document = brain.facts("c", first)
    assert document["unjudged"] == 2 * COUNTERS
    assert sum(row["class"] == "counter" for row in document["rows"]) == COUNTERS
    loaded = events.index("load comparison: 0")
    stored = next(at for at, name in enumerate(events) if name.startswith("judge comparison:"))
    between = events[loaded + 1 : stored + 1]
    # The testbox, whose last boot ended the first comparison, has an order of the second one
    # before the first one is judged.
    assert "dispatch orders: 0" in between
    assert events[stored] == "judge comparison: 1"
