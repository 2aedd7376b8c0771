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
from swingbot.service.ports import Transaction
from swingbot_jobs.reading.result import ParsedRun
from tests.contract.store.world import (
    REFUSED,
    TESTBOX,
    UNIT_JOB,
    Lab,
    Store,
    a_boot,
    a_boot_order,
    a_build,
    a_comparison,
    a_lab,
    a_testbox,
    add_testboxes,
    sha256,
)


@pytest.fixture
def lab(store: Store) -> Lab:
    with store.transaction() as tx:
        return a_lab(tx, testboxes=(TESTBOX, "other"))


def test_a_testbox_without_a_file_is_gone_until_its_file_is_back(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tx.testboxes.set_state(TESTBOX, "drained", "for repair")
        add_testboxes(tx, TESTBOX)
        assert tx.testboxes.states() == {TESTBOX: "drained", "other": "gone"}
        add_testboxes(tx, TESTBOX, "other")
        add_testboxes(tx, TESTBOX, "other")
        assert list(tx.testboxes.reasons().items()) == [
            (TESTBOX, ("drained", "for repair")),
            ("other", ("active", None)),
        ]


def test_a_testbox_that_is_not_present_is_remembered(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert list(tx.testboxes.remembered([TESTBOX])) == ["other"]
        assert tx.testboxes.remembered([])[TESTBOX].tbox_group == a_testbox().tbox_group
        assert tx.testboxes.remembered([TESTBOX, "other"]) == {}


def test_a_state_is_set_once(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.testboxes.set_state(TESTBOX, "drained", "for repair")
        assert not tx.testboxes.set_state(TESTBOX, "drained", "for repair")
        assert tx.testboxes.set_state(TESTBOX, "drained", "for good")
        assert not tx.testboxes.set_state("unknown", "drained", None)
        add_testboxes(tx, "other")
        assert not tx.testboxes.set_state(TESTBOX, "active", None)


def test_a_new_testbox_idles_and_moves_with_events(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        assert tx.testboxes.all() == []
        assert tx.testboxes.lock(TESTBOX).state is TestboxPhase.IDLE
        attempt = tx.attempts.add(a_boot_order(tx, lab).id, 1)
        now = tx.testboxes.move(TESTBOX, Assigned(attempt))
        assert (now.state, now.attempt) == (TestboxPhase.LEASED, attempt)
        tx.testboxes.move(TESTBOX, PhaseReported("booting", "kexec", attempt))
        tx.testboxes.move("other", Assigned(attempt))
        assert [(testbox.testbox, testbox.state) for testbox in tx.testboxes.all()] == [
            (TESTBOX, TestboxPhase.BOOTING),
            ("other", TestboxPhase.LEASED),
        ]
        assert tx.testboxes.lock(TESTBOX) == tx.testboxes.all()[0]


def test_a_quarantined_testbox_comes_home_to_quarantine(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tx.testboxes.set_state(TESTBOX, "quarantined", "moved")
        assert tx.testboxes.move(TESTBOX, Quarantined("moved")).state is TestboxPhase.QUARANTINED
        tx.testboxes.set_state(TESTBOX, "active", None)
        assert tx.testboxes.move(TESTBOX, Released("by a person")).state is TestboxPhase.IDLE
        tx.testboxes.add_event(TESTBOX, TestboxPhase.IDLE, TestboxPhase.IDLE, "looked at", None)


def screening(tx: Transaction) -> Screening:
    assert tx.testboxes.screenings([]) == {}
    found = tx.testboxes.screenings([TESTBOX, "other"])
    assert found.keys() == {TESTBOX, "other"} and found["other"] == Screening()
    return found[TESTBOX]


def test_boots_of_an_anchor_count_for_the_screening(store: Store, lab: Lab) -> None:
    a_build(store, lab)
    with store.transaction() as tx:
        assert screening(tx) == Screening()
        tx.testboxes.lock(TESTBOX)
        tx.testboxes.ask_screening({TESTBOX: 10, "other": 3})
    store.pass_time(10.0)
    with store.transaction() as tx:
        anchor = a_comparison(tx, lab, kind="anchor")
    a_boot(store, lab, series=f"c{anchor}")
    a_boot(store, lab, k=1, series=f"c{anchor}", status="hung", reason="silent", values=())
    a_boot(store, lab, k=2)
    with store.transaction() as tx:
        assert screening(tx) == Screening(boots=1)
        tx.comparisons.set_status(anchor, "done")
        assert screening(tx) == Screening(boots=1, tried=1)


def test_the_boots_of_completed_anchors_are_dated(store: Store, lab: Lab) -> None:
    a_build(store, lab)
    with store.transaction() as tx:
        anchor, unfinished = (a_comparison(tx, lab, kind="anchor") for _ in range(2))
        tx.comparisons.set_status(anchor, "done", "moved: up")
    for k, series in enumerate((f"c{anchor}", f"c{anchor}", f"c{unfinished}", "")):
        a_boot(store, lab, k=k, series=series)
    a_boot(store, lab, k=9, series=f"c{anchor}", status="hung", reason="silent", values=())
    with store.transaction() as tx:
        (known,) = tx.anchors.boots(TESTBOX)
        assert (known.anchor, known.kernel, known.mark) == (anchor, lab.kernels[0].id, "moved: up")
        assert len(known.days) == 2 and len(set(known.days)) == 1
        assert tx.anchors.boots("other") == []


def test_changed_hardware_is_screened_again(store: Store, lab: Lab) -> None:
    with store.transaction() as tx:
        tx.testboxes.lock(TESTBOX)
        tx.testboxes.set_hardware(TESTBOX, {"nr_cpu": 1}, changed=False)
        tx.testboxes.set_screened(TESTBOX)
        assert screening(tx) == Screening(hardware={"nr_cpu": 1}, screened=True)
        tx.testboxes.screen_again(TESTBOX)
        assert screening(tx).screened
        tx.testboxes.set_hardware(TESTBOX, {"nr_cpu": 2}, changed=True)
        assert screening(tx) == Screening(hardware={"nr_cpu": 2})


def test_what_was_tried_before_a_person_freed_a_testbox_counts_no_more(
    store: Store, lab: Lab
) -> None:
    with store.transaction() as tx:
        tx.testboxes.lock(TESTBOX)
    store.pass_time(10.0)
    with store.transaction() as tx:
        tx.comparisons.set_status(a_comparison(tx, lab, kind="anchor"), "failed", "no boots")
        assert screening(tx).tried == 1
    store.pass_time(10.0)
    with store.transaction() as tx:
        tx.testboxes.screen_again(TESTBOX)
        assert screening(tx).tried == 0


def test_an_alert_is_open_once_and_can_begin_again(store: Store, lab: Lab) -> None:
    lost, disk = AlertSubject("lost", TESTBOX), AlertSubject("disk", None)
    with store.transaction() as tx:
        number, alert = tx.alerts.begin(lost, "silent")
        tx.alerts.begin(disk, "full")
        assert (alert.kind, alert.testbox, alert.reason, alert.ended) == (
            "lost",
            TESTBOX,
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
        assert (found.testbox, found.runs, found.invalid) == (TESTBOX, 3, 2)
        assert found.reason == "turbo was on again"
        add_testboxes(tx, "other")
        assert tx.alerts.invalid_runs() == []
