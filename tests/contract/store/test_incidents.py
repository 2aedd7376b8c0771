"""What incidents, sightings, gates and reports promise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from swingbot.core.incident.model import Expected, Incident
from swingbot.core.model.statuses import BisectionEnd, ReportKind
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.proof.gates import GateRow
from swingbot.service.ports import Transaction
from swingbot.service.ports.reports import NewReport
from tests.contract.store.world import (
    METRIC,
    TESTBOX,
    UNIT_JOB,
    Lab,
    Store,
    a_bisection,
    a_comparison,
    a_lab,
    a_row,
    a_tree,
    a_variant,
    commit,
    new_swing,
    send,
)

KEY = (TESTBOX, UNIT_JOB, METRIC)


@dataclass(frozen=True, kw_only=True)
class Case:
    """An open incident of kernel 1 with one sighting, found by watching."""

    lab: Lab
    incident: int
    bisection: int
    sighting: int


@pytest.fixture
def case(store: Store) -> Case:
    with store.transaction() as tx:
        lab = a_lab(tx, 3)
        culprit, bisection = lab.kernels[1].id, a_bisection(tx, lab)
        incident = tx.incidents.add(lab.tree.id, culprit)
        tx.sightings.add(incident, bisection, culprit, None)
        (sighting,) = tx.sightings.of_incident(incident)
    return Case(lab=lab, incident=incident, bisection=bisection, sighting=sighting.id)


def known(tx: Transaction, number: int) -> Incident:
    found = tx.incidents.get(number)
    assert found is not None
    return found


def measure(tx: Transaction, case: Case, **more: Any) -> int:
    """The comparison of culprit and parent, done, with one row."""
    number = a_comparison(tx, case.lab, kind="attribute", **more)
    tx.comparisons.replace_rows(number, [(case.lab.spec, a_row())])
    tx.comparisons.set_status(number, "done")
    tx.sightings.set_comparison(case.sighting, number)
    return number


def a_report(tx: Transaction, case: Case, kind: ReportKind = "first", **more: Any) -> int:
    number = tx.reports.reserve()
    given: dict[str, Any] = {
        "number": number,
        "incident": case.incident,
        "kind": kind,
        "revision": tx.reports.next_revision(case.incident, kind),
        "message_id": f"<r{number}@example.org>",
        "to": ["dev@example.org"],
        "subject": "worse",
        "body": "hello\n",
        "message": b"mail",
        "state": "draft",
    }
    return tx.reports.add(NewReport(**{**given, **more}))


def test_a_culprit_has_one_incident(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        culprit = case.lab.kernels[1].id
        assert tx.incidents.add(case.lab.tree.id, culprit) == case.incident
        assert tx.incidents.of_culprit(case.lab.tree.id, culprit) == known(tx, case.incident)
        assert known(tx, case.incident) == Incident(
            id=case.incident,
            tree=case.lab.tree.id,
            culprit=culprit,
            commit=commit(1),
            status="open",
        )
        assert tx.incidents.of_culprit(case.lab.tree.id, case.lab.kernels[2].id) is None
        assert tx.incidents.get(case.incident + 1) is None


def test_incidents_are_found_by_status(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        other = tx.incidents.add(case.lab.tree.id, case.lab.kernels[2].id)
        assert [i.id for i in tx.incidents.in_status("open")] == [case.incident, other]
        tx.incidents.set_status(other, "duplicate", case.incident)
        assert known(tx, other).merged_into == case.incident
        tx.incidents.set_status(other, "open")
        assert known(tx, other).merged_into is None
        tx.incidents.set_status(other, "fixed")
        assert [i.id for i in tx.incidents.in_status("fixed", "open")] == [case.incident, other]


def test_a_fix_is_a_commit_and_its_check(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        check = a_comparison(tx, case.lab)
        tx.incidents.set_fix(case.incident, commit(9), check)
        assert (known(tx, case.incident).fixed_by, known(tx, case.incident).fix_check) == (
            commit(9),
            check,
        )
        tx.incidents.set_fix(case.incident, None, None)
        assert known(tx, case.incident).fixed_by is None


def test_the_last_event_of_an_act_is_remembered(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        assert tx.incidents.last_event(case.incident, "close") is None
        tx.incidents.add_event(case.incident, "close", "me", "not ours", {"x": 1})
        tx.incidents.add_event(case.incident, "close", "you")
        tx.incidents.add_event(case.incident, "opened", "swingbot", "why")
        assert tx.incidents.last_event(case.incident, "close") == (None, {})
        assert tx.incidents.last_event(case.incident, "opened") == ("why", {})


def test_a_bisection_sees_a_culprit_once(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        culprit = case.lab.kernels[1].id
        assert not tx.sightings.add(case.incident, case.bisection, culprit, "")
        other = a_bisection(tx, case.lab, request_key="other", origin="asked")
        assert tx.sightings.add(case.incident, other, culprit, None)
        assert [s.bisection for s in tx.sightings.of_incident(case.incident)] == [
            case.bisection,
            other,
        ]
        assert tx.incidents.bisections(case.incident) == [case.bisection, other]
        assert [s.id for s in tx.sightings.to_attribute()] == [case.sighting]


def test_a_sighting_is_identified_once(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        assert [s.id for s in tx.sightings.to_identify()] == [case.sighting]
        tx.sightings.identify(case.sighting, "a" * 40)
        tx.sightings.identify(case.sighting, "b" * 40)
        assert tx.sightings.to_identify() == []
        (seen,) = tx.sightings.like(commit(1), None)
        assert (seen.patch_id, seen.tree) == ("a" * 40, case.lab.tree.id)


def test_a_patch_is_found_in_any_tree_but_no_patch_is_like_no_other(
    store: Store, case: Case
) -> None:
    with store.transaction() as tx:
        tx.sightings.identify(case.sighting, "a" * 40)
        tree = a_tree(tx, "next")
        copy = a_variant(tx, tree, 50)
        incident = tx.incidents.add(tree.id, copy.id)
        bisection = a_bisection(tx, case.lab, request_key="next")
        tx.sightings.add(incident, bisection, copy.id, "a" * 40)
        assert [s.commit for s in tx.sightings.like(commit(1), "a" * 40)] == [commit(1), commit(50)]
        assert [s.commit for s in tx.sightings.like(commit(50), "")] == [commit(50)]
        assert tx.sightings.like(commit(9), None) == []


def test_the_first_comparison_of_a_sighting_is_that_of_its_incident(
    store: Store, case: Case
) -> None:
    with store.transaction() as tx:
        first = measure(tx, case)
        measure(tx, case)
        (seen,) = tx.sightings.of_incident(case.incident)
        assert seen.comparison == known(tx, case.incident).comparison == first
        assert tx.sightings.to_attribute() == []
        assert [s.id for s in tx.sightings.to_tell()] == [case.sighting]


def test_moved_sightings_take_their_bisections_along(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        comparison = measure(tx, case)
        other = tx.incidents.add(case.lab.tree.id, case.lab.kernels[2].id)
        tx.sightings.move([case.sighting], other)
        assert tx.sightings.of_incident(case.incident) == []
        assert tx.incidents.bisections(case.incident) == []
        assert tx.incidents.bisections(other) == [case.bisection]
        assert known(tx, other).comparison == comparison


def test_other_swings_of_a_comparison_wait_while_its_culprit_is_measured(
    store: Store, case: Case
) -> None:
    with store.transaction() as tx:
        tip = a_comparison(tx, case.lab, kind="watch")
        tx.comparisons.replace_rows(tip, [(case.lab.spec, a_row())])
        tx.swings.add(new_swing(tip, direction="worse", change_pct=-18.0, state="open"))
        (swing,) = tx.swings.in_state("open")
        tx.swings.set_state(swing.id, "explained", case.bisection)
        assert tx.incidents.comparisons_being_attributed() == [tip]
        measure(tx, case)
        assert tx.incidents.comparisons_being_attributed() == []


def test_an_incident_is_reported_once_it_is_measured(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        assert tx.incidents.to_report() == []
        comparison = measure(tx, case)
        assert tx.incidents.to_report() == [(case.incident, comparison)]
        report = a_report(tx, case)
        assert tx.incidents.to_report() == [] == tx.sightings.to_tell()
        assert tx.reports.withdraw(case.incident, "wrong") == [report]
        assert tx.incidents.to_report() == [(case.incident, comparison)]
        tx.incidents.set_status(case.incident, "invalid")
        assert tx.incidents.to_report() == []


def test_a_first_mail_waits_for_all_that_watching_found(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        comparison = measure(tx, case)
        other = a_bisection(tx, case.lab, request_key="other")
        tx.sightings.add(case.incident, other, case.lab.kernels[1].id, "")
        assert tx.incidents.to_report() == []
        (new,) = tx.sightings.to_attribute()
        tx.sightings.set_comparison(new.id, comparison)
        assert tx.incidents.to_report() == [(case.incident, comparison)]


def test_rows_of_an_incident_are_those_of_its_comparison_and_what_others_add(
    store: Store, case: Case
) -> None:
    with store.transaction() as tx:
        first = measure(tx, case)
        other = a_bisection(tx, case.lab, request_key="other")
        tx.sightings.add(case.incident, other, case.lab.kernels[1].id, "")
        more = a_comparison(tx, case.lab)
        given = [a_row(pct=-1.0), a_row(metric="b", pct=-2.0)]
        tx.comparisons.replace_rows(more, [(case.lab.spec, row) for row in given])
        tx.sightings.set_comparison(tx.sightings.of_incident(case.incident)[1].id, more)
        rows = tx.incidents.rows(case.incident, first)
        assert [(row.metric, row.change_pct) for row in rows] == [
            (METRIC, -18.0),
            ("b", -2.0),
        ]


def test_another_comparison_stands_for_the_incident(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        old, new = measure(tx, case), a_comparison(tx, case.lab)
        for _ in range(2):
            tx.incidents.replace_comparison(case.incident, old, new)
            assert known(tx, case.incident).comparison == new
        assert [s.comparison for s in tx.sightings.of_incident(case.incident)] == [new]


def test_an_expected_change_is_that_of_the_comparison_else_of_the_bisection(
    store: Store, case: Case
) -> None:
    with store.transaction() as tx:
        conclusion = {"culprits": [{"commit": commit(1), "change_pct": -20.0}]}
        tx.bisections.conclude(case.bisection, "culprit", conclusion, None)
        assert tx.incidents.expected_changes(*KEY) == []
        tx.incidents.set_status(case.incident, "expected")
        expected = Expected(
            incident=case.incident, commit=commit(1), patch_id=None, change_pct=-20.0
        )
        assert tx.incidents.expected_changes(*KEY) == [expected]
        assert tx.incidents.expected_changes(TESTBOX, UNIT_JOB, "other") == []
        tx.sightings.identify(case.sighting, "a" * 40)
        measure(tx, case)
        assert tx.incidents.expected_changes(*KEY) == [
            replace(expected, change_pct=-18.0, patch_id="a" * 40)
        ]


def test_a_gate_is_dated_by_its_last_try(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        assert tx.gates.incident(case.incident) is None
        comparison = measure(tx, case)
        proven = tx.gates.incident(case.incident)
        assert proven is not None and proven.comparison.id == comparison
        gate = GateRow(gate="tip", status="running", foreseen={"boots": 4}, detail={"x": 1})
        tx.gates.put(case.incident, gate)
        tx.gates.put(case.incident, GateRow(gate="code", status="pass"))
        assert tx.gates.open_incidents() == [case.incident]
    store.pass_time(100.0)
    with store.transaction() as tx:
        code, tip = tx.gates.of_incident(case.incident)
        assert code.gate == "code" and replace(tip, age_seconds=0.0) == gate
        assert tip.age_seconds == pytest.approx(100.0, abs=30.0)
        tx.gates.put(case.incident, replace(gate, status="fail", reason="gone"))
        assert tx.gates.of_incident(case.incident)[1].age_seconds > 50.0
        assert tx.gates.open_incidents() == []
        tx.gates.put(case.incident, replace(gate, tries=2))
        assert tx.gates.of_incident(case.incident)[1].age_seconds < 50.0


def test_a_report_of_the_same_revision_stays(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        first = a_report(tx, case)
        assert tx.reports.next_revision(case.incident, "first") == 2
        assert a_report(tx, case, revision=1) == first
        assert a_report(tx, case, revision=2) == first  # one first mail
        update = a_report(tx, case, "update")
        assert update > first
        assert tx.reports.of_incident(case.incident, "first") == [(first, "draft", False)]


def test_mails_that_left_are_not_withdrawn(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        sent = a_report(tx, case)
        send(tx, sent)
    with store.transaction() as tx:
        draft = a_report(tx, case, "update")
        queued = a_report(tx, case, "still", state="queued")
        assert tx.reports.withdraw(case.incident, "x", "still", queued=False) == []
        assert tx.reports.withdraw(case.incident, "x", "update") == [draft]
        assert tx.reports.withdraw(case.incident, "x") == [queued]
        assert tx.reports.of_incident(case.incident, "update") == [(draft, "dropped", True)]
        assert tx.reports.of_incident(case.incident, "first") == [(sent, "sent", False)]


def test_the_thread_begins_with_the_first_mail_that_was_sent(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        other = tx.incidents.add(case.lab.tree.id, case.lab.kernels[2].id)
        assert tx.reports.first_mail(case.incident) is None
        merged = a_report(tx, replace(case, incident=other))
        tx.incidents.set_status(other, "duplicate", case.incident)
        send(tx, merged)
    with store.transaction() as tx:
        mail = tx.reports.first_mail(case.incident)
        assert mail is not None
        assert (mail.report, mail.subject, mail.message) == (merged, "worse", b"mail")
        own = a_report(tx, case)
        send(tx, own)
        mail = tx.reports.first_mail(case.incident)
        assert mail is not None and mail.report == own
        assert [r[0] for r in tx.reports.of_incident(case.incident, "first")] == [merged, own]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("retraction", lambda tx, case: tx.incidents.set_status(case.incident, "invalid")),
        (
            "fixed",
            lambda tx, case: (
                tx.incidents.set_fix(case.incident, commit(9), a_comparison(tx, case.lab)),
                tx.incidents.set_status(case.incident, "fixed"),
            ),
        ),
        (
            "update",
            lambda tx, case: measure(tx, case),
        ),
        (
            "still",
            lambda tx, case: tx.comparisons.set_status(
                a_comparison(tx, case.lab, kind="watch"), "done"
            ),
        ),
    ],
)
def test_a_sent_mail_is_followed_by_what_there_is_to_say(
    store: Store, case: Case, kind: ReportKind, change: Callable[[Transaction, Case], object]
) -> None:
    with store.transaction() as tx:
        report = a_report(tx, case)
        assert tx.reports.to_follow(7.0) == []
        send(tx, report)
    if kind == "still":
        store.pass_time(8 * 86400.0)
    with store.transaction() as tx:
        change(tx, case)
        assert tx.reports.to_follow(7.0) == [(case.incident, kind)]
        if kind == "still":
            assert tx.reports.to_follow(0.0) == [] == tx.reports.to_follow(9.0)
        a_report(tx, case, kind)
        assert tx.reports.to_follow(7.0) == []


def test_a_week_has_one_digest(store: Store) -> None:
    with store.transaction() as tx:
        monday, earlier = date(2026, 3, 2), date(2026, 2, 23)
        one = a_digest(tx, monday)
        assert a_digest(tx, monday) == one
        a_digest(tx, earlier)
        assert tx.reports.digest_weeks(monday) == {monday}
        assert tx.reports.digest_weeks(earlier) == {monday, earlier}


def a_digest(tx: Transaction, week: date) -> int:
    number = tx.reports.reserve()
    return tx.reports.add(
        NewReport(
            number=number,
            incident=None,
            kind="digest",
            revision=1,
            message_id=f"<d{number}@example.org>",
            to=["dev@example.org"],
            subject="week",
            body="better\n",
            message=b"mail",
            state="queued",
            week=week,
        )
    )


def test_nobody_has_judged_a_new_class(store: Store) -> None:
    with store.transaction() as tx:
        assert tx.reports.class_record(ReportClass(metric=METRIC, testbox=TESTBOX)) == ClassRecord()


def test_improvements_are_swings_that_nobody_searches(store: Store, case: Case) -> None:
    with store.transaction() as tx:
        tip = a_comparison(tx, case.lab, kind="watch")
        tx.comparisons.replace_rows(tip, [(case.lab.spec, a_row(pct=8.0))])
        tx.swings.add(new_swing(tip, direction="better", change_pct=8.0, state="not_bisected"))
        tx.comparisons.set_status(tip, "done")
        long_ago, far = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
        (found,) = tx.reports.improvements_between(long_ago, far)
        assert (found.tree, found.metric, found.change_pct) == ("demo", METRIC, 8.0)
        assert (found.base, found.head) == (commit(0), commit(1))
        assert found.page == f"/comparison/c{tip}"
        assert tx.reports.improvements_between(far, far + timedelta(days=1)) == []


@pytest.mark.parametrize("status", ["not_reproduced", "credible_set", "creep", "inconclusive"])
def test_an_improvement_is_what_its_bisection_found(
    store: Store, case: Case, status: BisectionEnd
) -> None:
    """The range and size of a set of commits, the size of a creep; nothing that was denied."""
    low, middle, high = (variant.commit for variant in case.lab.kernels[:3])
    members = [{"commit": sha} for sha in (middle, high)]
    with store.transaction() as tx:
        tip = a_comparison(tx, case.lab, kind="watch")
        tx.comparisons.replace_rows(tip, [(case.lab.spec, a_row(pct=8.0))])
        tx.comparisons.set_status(tip, "done")
        tx.swings.add(new_swing(tip, direction="better", change_pct=8.0, state="not_bisected"))
        search = a_bisection(tx, case.lab, request_key=status)
        (swing,) = tx.swings.in_state("not_bisected")
        tx.swings.set_state(swing.id, "not_found", search)
        culprits = [{**one, "parent": low, "change_pct": 6.0} for one in members]
        facts = {"culprits": culprits, "members": members, "change_pct": 6.0}
        tx.bisections.conclude(search, status, facts, None)
        long_ago, far = datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
        found = tx.reports.improvements_between(long_ago, far)
    expected = {
        "not_reproduced": [],
        "credible_set": [(low, high, 6.0)],
        "creep": [(commit(0), commit(1), 6.0)],
        "inconclusive": [(commit(0), commit(1), 8.0)],
    }
    assert [(one.base, one.head, one.change_pct) for one in found] == expected[status]
