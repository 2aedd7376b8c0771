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
from swingbot.core.model.testbox_state import LeaseHeld, LeaseRefused
from swingbot.core.plan.alerts import InvalidRuns, QueueState
from swingbot.service.bisect.start import BisectionRequest, start_bisection
from swingbot.service.lab.alert_operator import alert_operator
from swingbot.service.lab.set_testboxes import drain, quarantine, resume
from swingbot.service.lab.watch_testboxes import SETTLE_SECONDS
from swingbot.service.tick import tick
from swingbot_db import read
from swingbot_db.attempts import AttemptTransactions
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
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.loop import JOB, METRIC
from tests.fakes.mail import running_smtpd
from tests.table_requests import compare


@pytest.fixture
def brain(
    tmp_path: Path, db_url: str, engine: sa.Engine, request: pytest.FixtureRequest
) -> Iterator[Brain]:
    settings = load(environ=environment(tmp_path, db_url, getattr(request, "param", 0)))
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
    attempts, number = AttemptTransactions(brain.engine), attempt_of(brain)
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


def test_a_second_controller_is_refused_until_the_first_one_fell_silent(brain: Brain) -> None:
    compared(brain, "rack7")
    turn(brain)
    attempts, number = AttemptTransactions(brain.engine), attempt_of(brain)
    first = attempts.hold(number, "lab1")
    assert isinstance(first, LeaseHeld)
    refused = attempts.hold(number, "lab2")
    assert isinstance(refused, LeaseRefused)
    assert refused.why.startswith(
        f"testbox rack7 is held by controller lab1 for attempt a{number} until "
    )
    again = attempts.hold(number, "lab1")
    assert isinstance(again, LeaseHeld) and again.fence == first.fence
    lapse(brain)
    second = attempts.hold(number, "lab2")
    assert isinstance(second, LeaseHeld) and second.fence > first.fence
    assert isinstance(attempts.hold(number, "lab1"), LeaseRefused)


def test_a_silent_controller_loses_its_testbox_with_one_mail_then_and_one_at_its_return(
    brain: Brain,
) -> None:
    compared(brain, "rack7")
    turn(brain)
    first = attempt_of(brain)
    AttemptTransactions(brain.engine).hold(first, "lab1")
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
    AttemptTransactions(brain.engine).hold(attempt_of(brain), "lab1")
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
    AttemptTransactions(brain.engine).hold(number, "lab1")
    lapse(brain)
    tick(deaf)
    assert attempt_of(brain) == number
    assert isinstance(AttemptTransactions(brain.engine).hold(number, "lab1"), LeaseHeld)
    tick(brain.lab)
    assert attempt_of(brain) == number


def test_failures_in_a_row_quarantine_a_testbox_and_its_order_goes_on_elsewhere(
    brain: Brain,
) -> None:
    name = compared(brain, "rack7")
    turn(brain)
    for _ in range(2):
        fail(brain, "no route")
        ready_again(brain)
        assert state(brain) == "leased"
    fail(brain, "no route")
    assert facts_of(brain)["state"] == "quarantined"
    assert facts_of(brain)["reason"] == (
        "failed: 3 attempts in a row were lost to the testbox or its controller; the "
        "last: the disk is full"
    )
    assert sent(brain) == ["testbox rack7 is quarantined"]
    brain.run()
    with brain.engine.connect() as conn:
        found = read.table(conn, name)
    assert (found["status"], {row["testbox"] for row in found["rows"]}) == ("done", {"rack8"})
    assert f"rack8 of its group takes over comparison {name}" in {
        event["why"] for event in facts_of(brain)["events"]
    }
    assert rows(brain, "SELECT FROM orders WHERE state IN ('waiting', 'ready', 'running')") == []
    resume(brain.lab.transaction, "rack7")
    turn(brain)
    assert (state(brain), facts_of(brain)["now"]["failures"]) == ("idle", 0)
    assert sorted(sent(brain)) == [
        "over: testbox rack7 is back in service",
        "testbox rack7 is quarantined",
    ]


def test_a_bisection_its_proof_and_its_mail_go_on_at_another_testbox(brain: Brain) -> None:
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    made = add_commits(
        brain.repo, [FakeCommit(), FakeCommit(speed=88), *(FakeCommit() for _ in range(4))]
    )
    brain.watch(base, testboxes=["rack7"])
    start_bisection(
        brain.lab,
        BisectionRequest(good=base, bad=made[-1], metric=METRIC, testbox="rack7", job_files=[JOB]),
    )
    for _ in range(6):
        turn(brain)
        brain.fake.work()
    before = rows(brain, "SELECT count(*) AS n FROM boot WHERE testbox = 'rack7'")[0]["n"]
    assert before > 0
    quarantine(brain.lab.transaction, "rack7", "failed: the power is off")
    brain.fake.work()
    brain.run()
    found = brain.facts("b")
    assert (found["status"], found["culprit"]["commit"]) == ("culprit", made[1])
    assert found["change_pct"] == pytest.approx(-12, abs=0.2)
    (mail,) = [subject for subject in brain.mails if made[1][:12] in subject]
    assert f"{METRIC} 12.0% worse" in mail
    after = rows(brain, "SELECT count(*) AS n FROM boot WHERE testbox = 'rack7'")[0]["n"]
    assert after <= before + 1, "what was under way ended there"
    why = {event["why"] for event in facts_of(brain)["events"]}
    assert "rack8 of its group takes over boots of bisection b1" in why
    assert rows(brain, "SELECT FROM orders WHERE state IN ('waiting', 'ready', 'running')") == []


def test_without_another_testbox_an_order_waits_with_a_fresh_budget_until_the_testbox_is_back(
    brain: Brain,
) -> None:
    drain(brain.lab.transaction, "rack8", "its twin is away")
    name = compared(brain, "rack7")
    turn(brain)
    for _ in range(3):
        fail(brain, "no route")
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
    AttemptTransactions(brain.engine).deliver(number, outcome | {"fault": "order", "files": {}})
    turn(brain)
    (found,) = rows(brain, "SELECT state, reason FROM orders WHERE id = :o", o=order["order_id"])
    assert (found["state"], found["reason"]) == ("failed", why)
    assert (facts_of(brain)["now"]["failures"], facts_of(brain)["state"]) == (0, "active")
    ready_again(brain)
    brain.run()
    with brain.engine.connect() as conn:
        comparison = read.table(conn, name)
    assert why in str(comparison)


def test_a_virtual_testbox_is_not_quarantined_for_what_its_host_lacks(brain: Brain) -> None:
    compared(brain, "vm-tcg")
    turn(brain)
    for _ in range(3):
        fail(brain, "disk full")
        ready_again(brain)
    assert facts_of(brain, "vm-tcg")["state"] == "active"


@pytest.mark.parametrize("brain", [3], indirect=True)
def test_a_new_testbox_votes_after_its_screening_and_a_changed_one_after_another(
    brain: Brain,
) -> None:
    name = compared(brain, "rack7")
    turn(brain)
    assert facts_of(brain)["words"] == "leased, screening 0 of 3 boots"
    brain.fake.work()
    turn(brain)
    assert facts_of(brain)["words"] == "leased, screening 1 of 3 boots"
    kinds = rows(
        brain,
        (
            "SELECT DISTINCT c.kind FROM boot b JOIN want w ON w.order_id = b.order_id JOIN "
            "comparison c ON c.id = w.comparison WHERE b.testbox = 'rack7'"
        ),
    )
    assert [row["kind"] for row in kinds] == ["anchor"]
    brain.run()
    assert facts_of(brain)["now"]["screening"] is None
    assert {event["why"] for event in facts_of(brain)["events"]} >= {
        "screened: 3 anchor boots gave its noise record"
    }
    with brain.engine.connect() as conn:
        assert read.table(conn, name)["status"] == "done"
    change(brain, 'UPDATE boot SET facts = facts || \'{"microcode": "0x1"}\'')
    turn(brain)
    assert facts_of(brain)["now"]["screening"] is None  # it is known better, not changed
    change(brain, 'UPDATE boot SET facts = facts || \'{"microcode": "0x2"}\'')
    turn(brain)
    assert facts_of(brain)["now"]["screening"] == {"boots": 0, "of": 3}
    assert "its hardware changed: microcode 0x1 -> 0x2; it is screened again" in {
        event["why"] for event in facts_of(brain)["events"]
    }


@pytest.mark.parametrize("brain", [3], indirect=True)
def test_a_testbox_on_which_its_anchor_does_not_come_up_is_not_let_to_vote(brain: Brain) -> None:
    name = compared(brain, "rack7")
    drain(brain.lab.transaction, "rack8", "its twin is away")
    brain.fake.dead = True
    for _ in range(6):
        tick(brain.lab)
        brain.fake.work()
    assert facts_of(brain)["reason"] == "screening: 0 of 3 anchor boots came up"
    assert sent(brain) == ["testbox rack7 is quarantined"]
    resume(brain.lab.transaction, "rack7")
    brain.fake.dead = False
    brain.run()
    with brain.engine.connect() as conn:
        assert (read.table(conn, name)["status"], facts_of(brain)["now"]["screening"]) == (
            "done",
            None,
        )


@pytest.mark.parametrize("brain", [3], indirect=True)
def test_boots_in_a_row_that_do_not_come_up_make_a_testbox_boot_its_anchor(brain: Brain) -> None:
    compared(brain, "rack7")
    brain.run()
    anchors = brain.count("comparison WHERE kind = 'anchor'")
    brain.fake.dead = True
    base = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    add_commits(brain.repo, [FakeCommit(), FakeCommit()])
    head = brain.lab.tools.git.fetch_branch("base", str(brain.repo), "main")
    compare(brain.lab, base, head, job_files=[JOB], testboxes=["rack7"], boots=2)
    for _ in range(8):
        tick(brain.lab)
        brain.fake.work()
    assert brain.count("comparison WHERE kind = 'anchor'") == anchors + 1
    assert (facts_of(brain)["reason"] or "").startswith(
        "moved: the anchor kernel no longer gives results"
    )
    assert sent(brain) == ["testbox rack7 has drifted"]


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
    AttemptTransactions(brain.engine).tell_phase(number, "running", "the job began")

    def swingbot(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, words, env=environment(tmp_path, db_url))
        return result.exit_code, result.output

    drain(brain.lab.transaction, "rack7", "new disk")
    assert "drained, still running" in swingbot("testbox", "list")[1]
    code, output = swingbot("testbox", "show", "rack7")
    assert (code, output.splitlines()[0]) == (0, "rack7  drained: new disk")
    assert output.splitlines()[1].startswith("drained, still running since 20")
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
