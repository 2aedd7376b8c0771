"""Testboxes in the database: what they do, controllers that fall silent or fight, screening,
stand-ins, and mails that come once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from swingbot.app.cli import main
from swingbot.app.settings import load
from swingbot.core.model.testbox_state import LeaseHeld
from swingbot.core.plan.alerts import InvalidRuns, QueueState
from swingbot.service.lab.alert_operator import alert_operator
from swingbot.service.lab.set_testboxes import drain, resume
from swingbot.service.lab.watch_testboxes import SETTLE_SECONDS
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot.service.tick import tick
from swingbot_db import read
from tests import builders as make
from tests.db.racks import (
    attempt_of,
    change,
    compared,
    controlled,
    environment,
    facts_of,
    fail,
    lapse,
    ready_again,
    rows,
    sent,
    state,
    turn,
)
from tests.fakelinux import FakeCommit, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.mail import running_smtpd
from tests.served import served


@pytest.fixture
def brain(tmp_path: Path, db_url: str, engine: sa.Engine) -> Iterator[Brain]:
    settings = load(environ=environment(tmp_path, db_url))
    repo = tmp_path / "linux"
    make_fakelinux(repo, [FakeCommit()])
    with running_smtpd(settings):
        made = make_brain(settings, engine, repo)
        clock = dataclasses.replace(
            made.lab.clock, listening=lambda: SETTLE_SECONDS, awake=lambda: 1e9
        )
        yield dataclasses.replace(made, lab=dataclasses.replace(made.lab, clock=clock))


def test_a_boot_is_seen_from_its_handing_out_to_its_return(brain: Brain) -> None:
    compared(brain, "rack7")
    turn(brain)
    attempts, number = WorkerRequests(brain.lab.transaction), attempt_of(brain)
    assert isinstance(attempts.hold(number, "lab1"), LeaseHeld)
    for phase in ("booting", "running", "returning"):
        assert attempts.tell_phase(number, phase, f"it is {phase}")
        assert (state(brain), facts_of(brain)["now"]["why"], facts_of(brain)["now"]["holder"]) == (
            phase,
            f"it is {phase}",
            "lab1",
        )
    brain.run()
    assert state(brain) == "idle"
    assert not attempts.tell_phase(number, "running", "late")
    changes = [
        (event["was"], event["state"], event["attempt"])
        for event in reversed(facts_of(brain)["events"])
    ][:5]
    assert changes == [
        ("idle", "leased", f"a{number}"),
        ("leased", "booting", f"a{number}"),
        ("booting", "running", f"a{number}"),
        ("running", "returning", f"a{number}"),
        ("returning", "idle", f"a{number}"),
    ]


def test_a_silent_controller_loses_its_testbox_with_one_mail_then_and_one_at_its_return(
    brain: Brain,
) -> None:
    compared(brain, "rack7")
    turn(brain)
    first = attempt_of(brain)
    WorkerRequests(brain.lab.transaction).hold(first, "lab1")
    lapse(brain)
    turn(brain, 3)
    assert (
        rows(brain, "SELECT state, reason FROM attempt WHERE id = :a", a=first)[0]["state"]
        == "dead"
    )
    (alert,) = facts_of(brain)["alerts"]
    assert alert["reason"].startswith("its controller lab1 did not report for 1")
    assert sent(brain) == ["testbox rack7 is lost"]
    ready_again(brain)
    # the next order brings it home
    assert (state(brain), attempt_of(brain) > first) == ("leased", True)
    WorkerRequests(brain.lab.transaction).hold(attempt_of(brain), "lab1")
    lapse(brain)
    turn(brain)
    assert sent(brain) == ["testbox rack7 is lost"]
    ready_again(brain)
    brain.run()
    assert state(brain) == "idle"
    assert sorted(sent(brain)) == ["over: testbox rack7 is back", "testbox rack7 is lost"]
    turn(brain, 2)
    assert len(sent(brain)) == 2
    reports = rows(brain, "SELECT kind, revision, state, to_addrs, dry_run FROM report ORDER BY id")
    assert [tuple(row.values()) for row in reports] == [
        ("alert", n, "sent", ["swingbot-reports@localhost"], False) for n in (1, 2)
    ]


def test_silence_while_nobody_could_be_heard_loses_nothing(brain: Brain) -> None:
    compared(brain, "rack7")
    turn(brain)
    clock = dataclasses.replace(brain.lab.clock, listening=lambda: SETTLE_SECONDS - 1)
    deaf = dataclasses.replace(brain.lab, clock=clock)
    number = attempt_of(brain)
    WorkerRequests(brain.lab.transaction).hold(number, "lab1")
    lapse(brain)
    tick(deaf)
    assert attempt_of(brain) == number
    assert isinstance(WorkerRequests(brain.lab.transaction).hold(number, "lab1"), LeaseHeld)
    tick(brain.lab)
    assert attempt_of(brain) == number


def test_without_another_testbox_an_order_waits_with_a_fresh_budget_until_the_testbox_is_back(
    brain: Brain,
) -> None:
    drain(brain.lab.transaction, "rack8", "its twin is away")
    name = compared(brain, "rack7")
    turn(brain)
    for _ in range(3):
        fail(brain)
        ready_again(brain)
    assert facts_of(brain)["state"] == "quarantined"
    turn(brain, 3)
    orders = rows(brain, "SELECT state, budget FROM orders WHERE testbox = 'rack7' ORDER BY id")
    assert {order["state"] for order in orders} == {"ready"}
    with brain.engine.connect() as conn:
        problems = [problem["text"] for problem in read.status(conn)["problems"]]
        comparison = read.table(conn, name)
    (waits,) = comparison["waits"]
    assert waits.startswith("testbox rack7 is quarantined: failed: 3 attempts in a row")
    assert waits in problems
    assert comparison["eta_seconds"] is None
    resume(brain.lab.transaction, "rack7")
    brain.run()
    with brain.engine.connect() as conn:
        comparison = read.table(conn, name)
    assert (comparison["status"], comparison["waits"]) == ("done", [])


def test_an_impossible_order_is_reported_at_once_and_is_not_a_failure_of_the_testbox(
    brain: Brain,
) -> None:
    name = compared(brain, "rack7")
    turn(brain)
    number = attempt_of(brain)
    (order,) = rows(brain, "SELECT order_id FROM attempt WHERE id = :a", a=number)
    why = "The kernel lacks what testbox rack7 needs: CONFIG_IGB=y"
    outcome = {
        "version": 1,
        "kind": "boot",
        "order": f"o{order['order_id']}",
        "attempt": f"a{number}",
        "status": "infra",
        "reason": why,
        "seconds": 1.0,
    }
    WorkerRequests(brain.lab.transaction).deliver(number, outcome | {"fault": "order", "files": {}})
    turn(brain)
    (found,) = rows(brain, "SELECT state, reason FROM orders WHERE id = :o", o=order["order_id"])
    assert (found["state"], found["reason"]) == ("failed", why)
    assert (facts_of(brain)["now"]["failures"], facts_of(brain)["state"]) == (0, "active")
    ready_again(brain)
    brain.run()
    with brain.engine.connect() as conn:
        comparison = read.table(conn, name)
    assert why in str(comparison)


def test_testboxes_that_are_set_right_by_hand_or_by_a_crash_agree_again_after_a_tick(
    brain: Brain,
) -> None:
    turn(brain)
    change(
        brain, "UPDATE testbox SET state = 'quarantined', reason = 'by SQL' WHERE name = 'rack7'"
    )
    change(brain, "UPDATE testbox_now SET state = 'running' WHERE testbox = 'rack8'")
    turn(brain)
    assert (state(brain), state(brain, "rack8")) == ("quarantined", "idle")
    assert sent(brain) == []  # who does it by hand knows


def test_the_share_of_invalid_runs_and_a_stuck_queue_are_reported_once_each(brain: Brain) -> None:
    compared(brain, "rack7")
    turn(brain)
    turn(brain)
    with brain.engine.begin() as conn:
        kernel = make.a_kernel(conn, make.a_tree(conn, "other"), 0)
        (spec,) = conn.execute(sa.text("SELECT sha256 FROM boot_spec LIMIT 1")).scalars()
        for k in range(7):
            boot = make.a_boot(
                conn,
                make.Testbox(name="rack7", spec=spec),
                kernel,
                k=k,
                values={make.METRIC: [1.0, 2.0, 3.0]},
            )
            if k < 2:
                conn.execute(
                    sa.text(
                        "UPDATE run SET status = 'invalid', reason = 'governor is "
                        "powersave' WHERE boot = :b"
                    ),
                    {"b": boot},
                )
    with brain.lab.transaction("look") as tx:
        (share,) = [found for found in tx.alerts.invalid_runs() if found.testbox == "rack7"]
        assert share == InvalidRuns(
            testbox="rack7", runs=21, invalid=6, reason="governor is powersave"
        )
    change(
        brain,
        "UPDATE orders SET created_at = now() - interval '3 h' WHERE state IN ('ready', 'running')",
    )
    change(
        brain, "UPDATE attempt SET ended_at = now() - interval '2.5 h' WHERE ended_at IS NOT NULL"
    )
    with brain.lab.transaction("look") as tx:
        queue = tx.alerts.queue_stillness()
        assert (queue.orders > 0, queue.oldest is not None, 8999 < queue.still_seconds < 9100) == (
            True,
            True,
            True,
        )
        assert isinstance(queue, QueueState)
    for _ in range(2):
        with brain.lab.transaction("alert operator") as tx:
            alert_operator(brain.lab, tx)
    assert sorted(sent(brain)) == ["many runs on testbox rack7 are invalid", "the queue is stuck"]
    clock = dataclasses.replace(brain.lab.clock, awake=lambda: 60.0)
    young = dataclasses.replace(brain.lab, clock=clock)
    with brain.lab.transaction("alert operator") as tx:
        alert_operator(young, tx)  # this loop has not looked for so long: it cannot say
    assert "over: the queue is moving again" in sent(brain)


def test_the_command_line_says_since_when_and_why(
    brain: Brain, tmp_path: Path, db_url: str
) -> None:
    number = controlled(brain, "rack7")
    WorkerRequests(brain.lab.transaction).tell_phase(number, "running", "the job began")

    def swingbot(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, words, env=environment(tmp_path, db_url))
        return result.exit_code, result.output

    drain(brain.lab.transaction, "rack7", "new disk")
    assert "drained, still running" in swingbot("testbox", "list")[1]
    code, output = swingbot("testbox", "show", "rack7")
    assert (code, output.splitlines()[0]) == (0, "rack7  drained: new disk")
    assert output.splitlines()[1].startswith("a machine that only these tests know")
    assert output.splitlines()[2].startswith("drained, still running since 20")
    assert ": the job began; driven by lab1, whose lease is valid until 20" in output
    assert "leased -> running" in output
    assert "testbox   rack7  drained, still running" in swingbot("status")[1]
    code, output = swingbot("testbox", "check", "rack7")
    assert (code, output) == (
        1,
        "swingbot: testbox rack7 is driven by host lab1; run there: swingbot-worker check rack7"
        "   (or use --here if this host can reach the testbox, too)\n",
    )
    code, output = swingbot("testbox", "check", "nowhere")
    assert (code, output.count("\n")) == (2, 1)


def test_counters_that_its_latest_boot_lacked_are_named(
    brain: Brain, tmp_path: Path, db_url: str
) -> None:
    lacking = "perf-stat: the machine has no cache-references, cache-misses"

    def shown() -> tuple[str, str]:
        env = environment(tmp_path, db_url)
        text = CliRunner().invoke(main, ["testbox", "show", "rack7"], env=env).output
        with served(db_url, tmp_path / "web", filled=False) as web:
            return text, web.client.get("/testbox/rack7").text

    assert not any("perf-stat" in text for text in shown())  # no boot yet
    brain.fake.facts |= {"perf_events": "task-clock,{cycles,instructions},branches,branch-misses"}
    compared(brain, "rack7")
    brain.run()
    assert all(lacking in text for text in shown())


@pytest.mark.parametrize(
    ("asked", "now", "screening", "words"),
    [
        ("active", "idle", None, "idle"),
        ("active", "leased", {"boots": 1, "of": 3}, "leased, screening 1 of 3 boots"),
        ("drained", "idle", None, "drained"),
        ("drained", "running", None, "drained, still running"),
    ],
)
def test_a_testbox_in_a_few_words(
    asked: str, now: str, screening: dict[str, int] | None, words: str
) -> None:
    shown = {"state": asked, "now": {"state": now, "screening": screening}}
    assert read.testbox_status.words(shown) == words
