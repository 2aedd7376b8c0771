"""Dispatch orders to workers: attempts, their dispatches and leases, and recovery of lost ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from swingbot.core.model.records import Attempt, Order
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.kernel_queue import KernelQueue, workers_by_compiler
from swingbot.core.plan.queue import builder_of, choose, patience
from swingbot.core.plan.turns import turns
from swingbot.service.lab.move_testboxes import gave_up, hand_out, withdrew
from swingbot.service.lab.watch_testboxes import unscreened
from swingbot.service.order.vouchers import end_unvouched
from swingbot.service.ports import Lab, LabSettings, Transaction
from swingbot.service.ports.attempts import Attempts
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.orders import Orders
from swingbot.service.ports.specs import Specs
from swingbot_jobs.contract.deadline import attempt_seconds
from swingbot_jobs.contract.trust import accepted
from swingbot_jobs.testbox.boot_time import boot_limit

# A dispatch that ends without an outcome (lost master or worker, cancelled build) is followed by
# another one that attaches to the same attempt. After this many, the attempt is declared dead and a
# new one starts within the order's budget.
MAX_DISPATCHES: Final = 4
# Wall-clock grace beyond the longest attempt before a silent attempt is declared dead.
GRACE: Final = 600.0


def dispatch_orders(lab: Lab, tx: Transaction) -> None:
    """Dispatch orders that are ready, if there is room on their testbox or builder and on the disk
    for results.
    """
    if lab.tools.no_room is not None and lab.tools.no_room(1.0) is not None:
        return
    end_unvouched(tx.orders, tx.variants)
    states = tx.testboxes.states()
    usable, quarantined = (
        {name for name in lab.catalogue.testboxes.present if states.get(name) == state}
        for state in ("active", "quarantined")
    )
    anchors_only = quarantined | unscreened(
        lab.catalogue.testboxes.present, lab.settings, tx.testboxes
    )
    leased = tx.attempts.leased()
    startable = _startable(lab.catalogue.testboxes, tx.orders, leased, anchors_only)
    attempts = _within_budget(tx.orders, tx.attempts, startable)
    # the health of a cluster is that of its nodes
    fit = {
        name
        for name in usable | quarantined
        if set(lab.catalogue.testboxes.present[name].nodes) <= usable
    }
    nodes = {
        name: testbox.nodes
        for name, testbox in lab.catalogue.testboxes.present.items()
        if testbox.nodes
    }
    for order in choose(
        [order for order in startable if order.id in attempts],
        busy=tx.dispatches.by_builder(),
        leased=leased,
        usable=fit,
        nodes=nodes,
        kernels=KernelQueue(
            compilers=tx.compilers.of_builds(),
            under_way=tx.compilers.under_way(),
            workers=workers_by_compiler(tx.compilers.all()),
        ),
    ):
        _hand_out(lab.catalogue.testboxes, tx, order, attempts[order.id] + 1)


def _startable(
    testboxes: KnownTestboxes,
    orders: Orders,
    leased: Collection[str],
    anchors_only: Collection[str],
) -> list[Order]:
    """Return the ready orders that their testbox may take, in turn; fail those that it refuses."""
    waiting = orders.ready(leased)
    turn = turns(waiting)
    anchors = orders.of_anchors() if anchors_only else set()
    startable = []
    for one in sorted(waiting, key=lambda one: turn[one.id]):
        testbox = testboxes.present.get(one.testbox or "")
        if testbox is not None and not accepted(one.trust, testbox.accepts):
            orders.set_state(
                one.id,
                "failed",
                f"{testbox.name} accepts only trusted kernels, and this kernel is {one.trust}",
            )
        elif one.testbox not in anchors_only or one.id in anchors:
            startable.append(one.order)
    return startable


def _within_budget(
    orders: Orders, attempts: Attempts, startable: Sequence[Order]
) -> dict[int, int]:
    """Return the number of attempts so far of each order that may start now; fail those without
    budget.
    """
    made = attempts.made_of([order.id for order in startable])
    found = {}
    for order in startable:
        number, ago, reason = made[order.id]
        if number >= order.budget:
            orders.set_state(
                order.id,
                "failed",
                f"abandoned after {number} attempts; the last: {reason or 'unknown reason'}",
            )
        elif not 0 <= ago < patience(number):  # negative: the clock was set back
            found[order.id] = number
    return found


def _hand_out(testboxes: KnownTestboxes, tx: Transaction, order: Order, number: int) -> None:
    attempt = tx.attempts.add(order.id, number)
    if order.testbox is not None:
        for testbox in (order.testbox, *testboxes.present[order.testbox].nodes):
            if not tx.attempts.take_lease(testbox, attempt):
                # rolls this tick back; the next one sees the lease
                raise AssertionError(f"testbox {testbox} is leased twice")
        hand_out(testboxes.present, tx.testboxes, order.testbox, attempt)
    tx.orders.set_state(order.id, "running")
    tx.dispatches.add(order.id, attempt, number, 1, builder_of(order))


def follow_dispatches(lab: Lab, tx: Transaction) -> None:
    """Dispatch attempts again whose dispatch ended without an outcome, or abandon them."""
    attempts = tx.attempts.in_state("running")
    orders = tx.orders.by_number([attempt.order_id for attempt in attempts])
    for attempt in attempts:
        order, age = orders[attempt.order_id], lab.clock.database.age(attempt.age_seconds)
        if order.state in ("cancelled", "failed"):
            why = f"the order was {order.state}"
            tx.attempts.declare_dead(attempt.id, why)
            withdrew(lab.catalogue.testboxes.present, tx.testboxes, order, why)
        elif age > GRACE and age > GRACE + attempt_seconds(  # a young attempt costs no statement
            order.kind,
            _deadline(lab.catalogue.testboxes, lab.settings, tx.specs, tx.boots, order),
        ):
            why = f"no sign of life for {age:.0f} s"
            _give_up(lab.catalogue.testboxes, lab.settings, tx, order, attempt, why, silent=True)
        elif attempt.dispatch_state != "over":
            continue
        elif (dead := _why_dead(attempt)) is not None:
            _give_up(lab.catalogue.testboxes, lab.settings, tx, order, attempt, dead)
        else:
            dispatch = attempt.dispatch_number + 1
            tx.dispatches.add(order.id, attempt.id, attempt.number, dispatch, builder_of(order))


def _deadline(
    testboxes: KnownTestboxes, settings: LabSettings, specs: Specs, boots: Boots, order: Order
) -> float:
    if order.testbox is None or order.spec is None:
        return settings.deadline_build
    testbox = testboxes.known(order.testbox)
    measured = boots.seconds(order.testbox, order.spec)
    return boot_limit(testbox, specs.get(order.spec), measured)


def _why_dead(attempt: Attempt) -> str | None:
    """Return why an attempt whose dispatch is over gets no other dispatch; None if it gets one."""
    if attempt.dispatch_result == "success":
        return "the worker reported done but no outcome arrived; see its log under state/log"
    if attempt.dispatch_number >= MAX_DISPATCHES:
        return (
            f"dispatched {attempt.dispatch_number} times without an outcome; the last dispatch "
            f"ended with {attempt.dispatch_result}"
        )
    return None


def _give_up(
    testboxes: KnownTestboxes,
    settings: LabSettings,
    tx: Transaction,
    order: Order,
    attempt: Attempt,
    reason: str,
    *,
    silent: bool = False,
) -> None:
    tx.attempts.declare_dead(attempt.id, reason)
    tx.orders.set_state(order.id, "ready")
    gave_up(
        testboxes.present,
        settings,
        tx.orders,
        tx.testboxes,
        order,
        reason,
        silent=silent,
    )
