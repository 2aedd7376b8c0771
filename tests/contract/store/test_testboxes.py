"""What testboxes, their screening and alerts promise."""

from __future__ import annotations

import pytest

from swingbot.core.model.testbox_state import (
    Assigned,
    PhaseReported,
    Quarantined,
    Released,
    TestboxPhase,
)
from swingbot.core.plan.alerts import AlertSubject
from swingbot.core.plan.testbox_rules import Screening
from swingbot_jobs.reading.result import ParsedRun
from tests.contract.store.world import (
    BOX,
    REFUSED,
    UNIT_JOB,
    Lab,
    Store,
    a_boot,
    a_boot_order,
    a_box,
    a_build,
    a_comparison,
    a_lab,
    add_boxes,
    sha256,
)


@pytest.fixture
def lab(store: Store) -> Lab:
    with store.transaction() as tx:
        return a_lab(tx, boxes=(BOX, "other"))


def test_a_testbox_without_a_file_is_gone_until_its_file_is_back(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tx.testboxes.set_state(BOX, "drained", "for repair")
        add_boxes(tx, BOX)
        assert tx.testboxes.states() == {BOX: "drained", "other": "gone"}
        add_boxes(tx, BOX, "other")
        add_boxes(tx, BOX, "other")
        assert list(tx.testboxes.reasons().items()) == [
            (BOX, ("drained", "for repair")),
            ("other", ("active", None)),
        ]


def test_a_testbox_that_is_not_present_is_remembered(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert list(tx.testboxes.remembered([BOX])) == ["other"]
        assert tx.testboxes.remembered([])[BOX].tbox_group == a_box().tbox_group
        assert tx.testboxes.remembered([BOX, "other"]) == {}


def test_a_state_is_set_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.testboxes.set_state(BOX, "drained", "for repair")
        assert not tx.testboxes.set_state(BOX, "drained", "for repair")
        assert tx.testboxes.set_state(BOX, "drained", "for good")
        assert not tx.testboxes.set_state("unknown", "drained", None)
        add_boxes(tx, "other")
        assert not tx.testboxes.set_state(BOX, "active", None)


def test_a_new_testbox_idles_and_moves_with_events(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.testboxes.all() == []
        assert tx.testboxes.lock(BOX).state is TestboxPhase.IDLE
        attempt = tx.attempts.add(a_boot_order(tx, lab).id, 1)
        now = tx.testboxes.move(BOX, Assigned(attempt))
        assert (now.state, now.attempt) == (TestboxPhase.LEASED, attempt)
        tx.testboxes.move(BOX, PhaseReported("booting", "kexec", attempt))
        tx.testboxes.move("other", Assigned(attempt))
        assert [(box.testbox, box.state) for box in tx.testboxes.all()] == [
            (BOX, TestboxPhase.BOOTING),
            ("other", TestboxPhase.LEASED),
        ]
        assert tx.testboxes.lock(BOX) == tx.testboxes.all()[0]


def test_a_quarantined_testbox_comes_home_to_quarantine(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tx.testboxes.set_state(BOX, "quarantined", "moved")
        assert tx.testboxes.move(BOX, Quarantined("moved")).state is TestboxPhase.QUARANTINED
        tx.testboxes.set_state(BOX, "active", None)
        assert tx.testboxes.move(BOX, Released("by a person")).state is TestboxPhase.IDLE
        tx.testboxes.add_event(BOX, TestboxPhase.IDLE, TestboxPhase.IDLE, "looked at", None)


def test_boots_of_an_anchor_count_for_the_screening(store: Store, lab: Lab) -> None:
    a_build(store, lab)
    with store.transaction() as tx:
        assert tx.testboxes.screening(BOX) == Screening()
        tx.testboxes.lock(BOX)
        tx.testboxes.ask_screening(BOX, 10)
    store.pass_time(10.0)
    with store.transaction() as tx:
        anchor = a_comparison(tx, lab, kind="anchor")
    a_boot(store, lab, series=f"c{anchor}")
    a_boot(store, lab, k=1, series=f"c{anchor}", status="hung", reason="silent", values=())
    a_boot(store, lab, k=2)
    with store.transaction() as tx:
        assert tx.testboxes.screening(BOX) == Screening(boots=1)
        tx.comparisons.set_status(anchor, "done")
        assert tx.testboxes.screening(BOX) == Screening(boots=1, tried=1)


def test_changed_hardware_is_screened_again(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tx.testboxes.lock(BOX)
        tx.testboxes.set_hardware(BOX, {"nr_cpu": 1}, changed=False)
        tx.testboxes.set_screened(BOX)
        assert tx.testboxes.screening(BOX) == Screening(hardware={"nr_cpu": 1}, screened=True)
        tx.testboxes.screen_again(BOX)
        assert tx.testboxes.screening(BOX).screened
        tx.testboxes.set_hardware(BOX, {"nr_cpu": 2}, changed=True)
        assert tx.testboxes.screening(BOX) == Screening(hardware={"nr_cpu": 2})


def test_what_was_tried_before_a_person_freed_a_testbox_counts_no_more(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        tx.testboxes.lock(BOX)
    store.pass_time(10.0)
    with store.transaction() as tx:
        tx.comparisons.set_status(a_comparison(tx, lab, kind="anchor"), "failed", "no boots")
        assert tx.testboxes.screening(BOX).tried == 1
    store.pass_time(10.0)
    with store.transaction() as tx:
        tx.testboxes.screen_again(BOX)
        assert tx.testboxes.screening(BOX).tried == 0


def test_an_alert_is_open_once_and_can_begin_again(store: Store, lab: Lab) -> None:
    lost, disk = AlertSubject("lost", BOX), AlertSubject("disk", None)
    with store.transaction() as tx:
        number, alert = tx.alerts.begin(lost, "silent")
        tx.alerts.begin(disk, "full")
        assert (alert.kind, alert.testbox, alert.reason, alert.ended) == (
            "lost",
            BOX,
            "silent",
            None,
        )
        assert tx.alerts.open() == {lost, disk}
    with pytest.raises(REFUSED), store.transaction() as tx:
        tx.alerts.begin(disk, "full")
    with store.transaction() as tx:
        ended, alert = tx.alerts.end(lost)
        assert ended == number and alert.ended is not None and alert.ended >= alert.began
        assert tx.alerts.open() == {disk}
        assert tx.alerts.begin(lost, "silent again")[0] != number


def test_invalid_runs_are_counted_without_those_that_warm_up(store: Store, lab: Lab) -> None:
    a_build(store, lab)
    with store.transaction() as tx:
        assert tx.alerts.invalid_runs() == []
    boot = a_boot(store, lab, values=())
    runs = [
        ParsedRun(unit_job=UNIT_JOB, number=0, status="warmup", reason="warms up"),
        ParsedRun(unit_job=UNIT_JOB, number=1, status="ok", samples={"m": [1.0]}),
        ParsedRun(unit_job=UNIT_JOB, number=2, status="invalid", reason="turbo was on"),
        ParsedRun(unit_job=UNIT_JOB, number=3, status="invalid", reason="turbo was on again"),
    ]
    with store.transaction() as tx:
        tx.runs.add(boot, runs, {UNIT_JOB: sha256("parser")})
        (found,) = tx.alerts.invalid_runs()
        assert (found.testbox, found.runs, found.invalid) == (BOX, 3, 2)
        assert found.reason == "turbo was on again"
        add_boxes(tx, "other")
        assert tx.alerts.invalid_runs() == []
