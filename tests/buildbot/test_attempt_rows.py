from __future__ import annotations

from typing import Any

from swingbot.core.model.dispatch import Delivery
from tests.buildbot.lab import Lab
from tests.buildbot.rows import add_build_order, attempt_row, dispatch_row


def outcome_of(lab: Lab, attempt: int, **more: Any) -> dict[str, Any]:
    order = attempt_row(lab, attempt).order_id
    document = {
        "version": 1,
        "kind": "build",
        "order": f"o{order}",
        "attempt": f"a{attempt}",
        "status": "failed",
        "reason": "x",
        "seconds": 1.50,
        "files": {},
    }
    return document | more


def test_the_first_outcome_ends_the_attempt_and_stands(lab: Lab) -> None:
    attempt = add_build_order(lab)
    assert lab.attempts.deliver(attempt, outcome_of(lab, attempt)) is Delivery.STORED
    assert lab.attempts.deliver(attempt, outcome_of(lab, attempt)) is Delivery.SAME
    assert lab.attempts.deliver(attempt, outcome_of(lab, attempt, reason="other")) is Delivery.OTHER
    row = attempt_row(lab, attempt)
    assert (row.state, row.outcome, row.late) == ("ended", outcome_of(lab, attempt), None)
    assert row.ended_at is not None


def test_what_comes_for_a_dead_attempt_is_kept_and_never_counted(lab: Lab) -> None:
    attempt = add_build_order(lab)
    lab.sql("UPDATE attempt SET state = 'dead', ended_at = now()")
    assert [lab.attempts.deliver(attempt, outcome_of(lab, attempt)) for _ in range(2)] == [
        Delivery.LATE,
        Delivery.LATE,
    ]
    assert lab.attempts.deliver(attempt, outcome_of(lab, attempt, reason="other")) is Delivery.OTHER
    row = attempt_row(lab, attempt)
    assert (row.state, row.outcome, row.late) == ("dead", None, outcome_of(lab, attempt))


def test_an_outcome_of_other_work_is_foreign(lab: Lab) -> None:
    attempt = add_build_order(lab)
    for wrong in ({"order": "o999"}, {"attempt": "a999"}, {"kind": "boot"}):
        assert lab.attempts.deliver(attempt, outcome_of(lab, attempt) | wrong) is Delivery.FOREIGN
    assert lab.attempts.deliver(999, outcome_of(lab, attempt)) is Delivery.UNKNOWN
    assert attempt_row(lab, attempt).state == "running"


def test_an_attempt_is_wanted_while_it_runs_for_an_order_that_is_not_cancelled(lab: Lab) -> None:
    attempt = add_build_order(lab)
    assert lab.attempts.wanted(attempt) is True
    lab.sql("UPDATE orders SET state = 'cancelled', ended_at = now()")
    assert lab.attempts.wanted(attempt) is False
    assert lab.attempts.wanted(999) is None


def test_notes_about_a_dispatch_can_be_repeated_and_the_first_result_stands(lab: Lab) -> None:
    attempt = add_build_order(lab)
    (dispatch,) = lab.attempts.open_dispatches()
    assert (dispatch.state, dispatch.builder, dispatch.cancelled) == ("wanted", "kernel", False)
    for _ in range(2):
        lab.attempts.mark_placed(dispatch.id, 5, 6)
        lab.attempts.mark_build(dispatch.id, 7, 8)
    assert lab.attempts.open_dispatches()[0].bb_request == 6
    lab.attempts.mark_over(dispatch.id, "retry")
    lab.attempts.mark_over(dispatch.id, "success")
    row = dispatch_row(lab, attempt)
    assert (row.state, row.result, row.bb_buildset, row.bb_builder, row.bb_number) == (
        "over",
        "retry",
        5,
        7,
        8,
    )
    assert lab.attempts.open_dispatches() == []


def test_the_facts_of_a_build_order_are_complete(lab: Lab) -> None:
    facts = lab.attempts.order_facts(add_build_order(lab))
    assert facts is not None
    assert (
        facts.kind,
        facts.commit,
        facts.compiler,
        facts.image_sha256,
        list(facts.unit_jobs),
    ) == ("build", "1" * 40, "gcc", None, [])
    assert lab.attempts.order_facts(999) is None
