"""What is promised of attempts to workers, to Buildbot, and to controllers of testboxes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from swingbot.core.access.uploads import UploadLimits, UploadUsage
from swingbot.core.model.dispatch import Delivery
from swingbot.core.model.testbox_state import LeaseHeld, LeaseRefused
from swingbot.service.order.worker_requests import WorkerRequests
from swingbot_jobs import codec
from tests.contract.store.world import (
    TESTBOX,
    Lab,
    Store,
    a_boot_order,
    a_build,
    a_job,
    a_lab,
    commit,
    sha256,
)

MISSING = 99999


@pytest.fixture
def lab(store: Store) -> Lab:
    with store.transaction() as tx:
        return a_lab(tx, testboxes=(TESTBOX, "node"))


@pytest.fixture
def build(store: Store, lab: Lab) -> int:
    """An attempt at a build."""
    with store.transaction() as tx:
        order = tx.orders.ensure_build(lab.kernels[0], 5)
        attempt = tx.attempts.add(order.id, 1)
        tx.dispatches.add(order.id, attempt, 1, 1, "kernel")
    return attempt


@pytest.fixture
def boot(store: Store, lab: Lab) -> int:
    """An attempt at a boot, with the leases of two testboxes."""
    with store.transaction() as tx:
        attempt = tx.attempts.add(a_boot_order(tx, lab).id, 1)
        for testbox in ("node", TESTBOX):
            assert tx.attempts.take_lease(testbox, attempt)
    return attempt


def workers(store: Store) -> WorkerRequests:
    return WorkerRequests(store.transaction, lease_seconds=300.0)


def outcome_of(store: Store, attempt: int, **more: Any) -> dict[str, Any]:
    with store.transaction() as tx:
        stored = tx.attempts.find(attempt)
    assert stored is not None
    names = {"order": f"o{stored.order}", "attempt": f"a{attempt}", "kind": stored.kind}
    return {"version": 1, "status": "failed", "reason": "x", "seconds": 1.5} | names | more


def test_the_first_outcome_ends_the_attempt_and_stands(store: Store, build: int) -> None:
    first, other = outcome_of(store, build), outcome_of(store, build, reason="other")
    deliveries = [workers(store).deliver(build, each) for each in (first, first, other)]
    assert deliveries == [Delivery.STORED, Delivery.SAME, Delivery.OTHER]
    with store.transaction() as tx:
        stored = tx.attempts.find(build)
        assert stored is not None
        assert (stored.state, stored.outcome, stored.late) == ("ended", first, None)
        assert [one.id for one in tx.attempts.in_state("ended", ingested=False)] == [build]


def test_what_comes_for_a_dead_attempt_is_kept_and_never_counted(store: Store, build: int) -> None:
    with store.transaction() as tx:
        tx.attempts.declare_dead(build, "its worker is gone")
    first, other = outcome_of(store, build), outcome_of(store, build, reason="other")
    deliveries = [workers(store).deliver(build, each) for each in (first, first, other)]
    assert deliveries == [Delivery.LATE, Delivery.LATE, Delivery.OTHER]
    with store.transaction() as tx:
        stored = tx.attempts.find(build)
    assert stored is not None
    assert (stored.state, stored.outcome, stored.late) == ("dead", None, first)


def test_an_outcome_of_other_work_is_foreign(store: Store, build: int) -> None:
    for wrong in ({"order": "o999"}, {"attempt": "a999"}, {"kind": "boot"}):
        document = outcome_of(store, build) | wrong
        assert workers(store).deliver(build, document) is Delivery.FOREIGN
    assert workers(store).deliver(MISSING, outcome_of(store, build)) is Delivery.UNKNOWN
    assert workers(store).wanted(build) is True


def test_an_attempt_is_wanted_while_it_runs_for_an_order_that_is_not_cancelled(
    store: Store, build: int, boot: int
) -> None:
    with store.transaction() as tx:
        stored = tx.attempts.find(build)
        assert stored is not None
        tx.orders.set_state(stored.order, "cancelled")
        tx.attempts.declare_dead(boot, "its worker is gone")
    wanted = [workers(store).wanted(attempt) for attempt in (build, boot, MISSING)]
    assert wanted == [False, False, None]


def test_files_count_once_until_the_outcome(store: Store, build: int) -> None:
    requests, cap = workers(store), UploadLimits(files=2, size=100)
    one, two, three = (sha256(name) for name in "abc")
    assert [requests.admit(build, one, 40, cap) for _ in range(2)] == [None, None]
    assert requests.brought(build, one) == UploadUsage(over=False, files=0, size=0)
    assert requests.brought(build, two) == UploadUsage(over=False, files=1, size=40)
    assert "exceed" in (requests.admit(build, two, 61, cap) or "")
    assert requests.admit(build, two, 60, cap) is None
    assert "limit of one attempt" in (requests.admit(build, three, 0, cap) or "")
    requests.deliver(build, outcome_of(store, build))
    assert requests.brought(build, three) == UploadUsage(over=True, files=2, size=100)
    assert "accepts nothing more" in (requests.admit(build, three, 0, cap) or "")
    assert requests.brought(MISSING, one) is None
    assert requests.admit(MISSING, one, 1, cap) == "this attempt does not exist"


def test_the_facts_of_an_order_are_complete(store: Store, lab: Lab, build: int) -> None:
    with store.transaction() as tx:
        facts = tx.attempts.order_facts(build)
        assert facts is not None
        assert (facts.kind, facts.commit, facts.compiler) == ("build", commit(0), "gcc")
        assert (facts.testbox, facts.image_sha256, list(facts.unit_jobs)) == (None, None, [])
        tx.attempts.declare_dead(build, "again")
        image = a_build(store, lab)
        boot = tx.attempts.add(a_boot_order(tx, lab, k=3).id, 1)
        facts = tx.attempts.order_facts(boot)
        assert facts is not None
        assert (facts.attempt_state, facts.testbox, facts.k) == ("running", TESTBOX, 3)
        assert facts.image_sha256 == image
        assert list(facts.unit_jobs) == [codec.plain(a_job())]
        assert tx.attempts.order_facts(MISSING) is None


def test_notes_about_a_dispatch_can_be_repeated_and_the_first_result_stands(
    store: Store, lab: Lab, build: int
) -> None:
    with store.transaction() as tx:
        urgent = a_boot_order(tx, lab, priority=9)
        other = tx.attempts.add(urgent.id, 1)
        tx.dispatches.add(urgent.id, other, 1, 1, "boot-box")
        first, dispatch = tx.dispatches.open()
        assert (first.attempt, first.compiler, first.priority) == (other, None, 9)
        assert (dispatch.attempt, dispatch.state, dispatch.builder) == (build, "wanted", "kernel")
        assert (dispatch.compiler, dispatch.cancelled) == ("gcc", False)
        assert dispatch.external_id == f"o{dispatch.order}/a1/d1"
        for _ in range(2):
            tx.dispatches.place(dispatch.id, 5, 6)
            tx.dispatches.set_build(dispatch.id, 7, 8)
        placed = replace(dispatch, state="placed", bb_request=6, bb_number=8)
        assert tx.dispatches.open() == [first, placed]
        tx.orders.set_state(dispatch.order, "cancelled")
        tx.attempts.declare_dead(other, "its worker is gone")
        assert all(one.cancelled for one in tx.dispatches.open())
        tx.dispatches.close(dispatch.id, "retry")
        tx.dispatches.close(dispatch.id, "success")
        assert [one.id for one in tx.dispatches.open()] == [first.id]
        (attempt,) = tx.attempts.in_state("running")
        assert (attempt.dispatch_state, attempt.dispatch_result) == ("over", "retry")


def test_a_second_controller_is_refused_until_the_first_one_fell_silent(
    store: Store, boot: int, build: int
) -> None:
    requests = workers(store)
    first, again = requests.hold(boot, "lab1"), requests.hold(boot, "lab1")
    assert isinstance(first, LeaseHeld) and isinstance(again, LeaseHeld)
    assert again.fence == first.fence and again.seconds == pytest.approx(300.0, abs=15.0)
    refused = requests.hold(boot, "lab2")
    assert isinstance(refused, LeaseRefused)
    assert refused.why.startswith(
        f"testbox {TESTBOX} is held by controller lab1 for attempt a{boot} until "
    )
    store.pass_time(200.0)
    renewed = requests.hold(boot, "lab1")
    assert renewed == LeaseHeld(fence=first.fence, seconds=300.0)
    store.pass_time(301.0)
    second = requests.hold(boot, "lab2")
    assert isinstance(second, LeaseHeld) and second.fence > first.fence
    assert isinstance(requests.hold(boot, "lab1"), LeaseRefused)
    assert requests.hold(build, "lab1") is None
    with store.transaction() as tx:
        tx.attempts.release_lease(boot)
    assert requests.hold(boot, "lab2") is None


def test_a_phase_is_that_of_all_testboxes_but_a_lost_node_is_named(store: Store, boot: int) -> None:
    requests = workers(store)
    requests.hold(boot, "lab1")

    def phases() -> list[str]:
        with store.transaction() as tx:
            return [str(tx.testboxes.lock(name).state) for name in (TESTBOX, "node")]

    with store.transaction() as tx:
        assert tx.leases.testboxes(boot) == [TESTBOX, "node"]
    assert requests.tell_phase(boot, "running", "the job runs")
    assert phases() == ["running", "running"]
    assert requests.tell_phase(boot, "lost", "no ping from other: it is gone")
    assert phases() == ["lost", "running"]
    with store.transaction() as tx:
        tx.attempts.release_lease(boot)
    assert not requests.tell_phase(boot, "running", "late")
