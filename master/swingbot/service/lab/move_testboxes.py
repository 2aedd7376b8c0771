"""Track the state of each testbox from dispatch to outcome or timeout, and quarantine one that
fails repeatedly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from swingbot.core.model.records import Order
from swingbot.core.model.testbox_state import (
    Assigned,
    AttemptCancelled,
    AttemptEnded,
    AttemptFailed,
    ControllerLost,
    Event,
    Quarantined,
    TestboxStatus,
)
from swingbot.core.plan.testbox_rules import failures_allowed, quarantine_reason
from swingbot.service.lab.anchors import order_anchor
from swingbot.service.ports import LabSettings, Transaction
from swingbot.service.ports.orders import Orders
from swingbot.service.ports.testboxes import Testboxes
from swingbot_jobs.contract.orders import OutcomeStatus
from swingbot_jobs.testbox.definition import Testbox

MORE_ATTEMPTS: Final = 3  # granted to the orders of a quarantined testbox when it is back


def hand_out(
    present: Mapping[str, Testbox], testboxes: Testboxes, testbox: str, attempt: int
) -> None:
    """Assign the testbox, and the nodes of a cluster, to an attempt."""
    for name in (testbox, *_nodes(present, testbox)):
        testboxes.move(name, Assigned(attempt))


def outcome_came(
    present: Mapping[str, Testbox],
    settings: LabSettings,
    tx: Transaction,
    order: Order,
    status: OutcomeStatus,
    reason: str | None,
) -> None:
    """Handle an attempt that ended by itself: the testbox is free, or its driver reported a failure
    of it.
    """
    if order.testbox is None:
        return
    _give_nodes_back(present, tx.testboxes, order.testbox, status)
    if status == "infra":
        _fail(
            present,
            settings,
            tx.orders,
            tx.testboxes,
            order.testbox,
            AttemptFailed(reason or "no reason given"),
        )
        return
    testbox = tx.testboxes.move(
        order.testbox,
        AttemptEnded(status == "up", status.replace("_", " ") + (f": {reason}" if reason else "")),
    )
    _bar_if_due(present, settings, tx.orders, tx.testboxes, testbox)
    most = _allowed_failures(present, settings, testbox.testbox)
    if most and testbox.down and testbox.down % most == 0:
        # that many failed boots in a row may be caused by the testbox
        order_anchor(tx.comparisons, tx.anchors, testbox.testbox)


def gave_up(
    present: Mapping[str, Testbox],
    settings: LabSettings,
    orders: Orders,
    testboxes: Testboxes,
    order: Order,
    reason: str,
    *,
    silent: bool,
) -> None:
    """Handle an attempt that the service abandoned.

    `silent`: the worker reported nothing, so the state of the testbox is unknown.
    """
    if order.testbox is not None:
        _give_nodes_back(present, testboxes, order.testbox, reason)
        _fail(
            present,
            settings,
            orders,
            testboxes,
            order.testbox,
            ControllerLost(reason) if silent else AttemptFailed(reason),
        )


def withdrew(
    present: Mapping[str, Testbox], testboxes: Testboxes, order: Order, reason: str
) -> None:
    """Handle an order that became unnecessary; its executor stops by itself."""
    if order.testbox is not None:
        _give_nodes_back(present, testboxes, order.testbox, reason)
        testboxes.move(order.testbox, AttemptCancelled(reason))


def _give_nodes_back(
    present: Mapping[str, Testbox], testboxes: Testboxes, testbox: str, why: str
) -> None:
    """Free the nodes of a cluster, each in its own state.

    A failure counts for the cluster, because the failing node is not known for sure.
    """
    for name in _nodes(present, testbox):
        testboxes.move(name, AttemptCancelled(f"given back by cluster {testbox}: {why}"))


def _nodes(present: Mapping[str, Testbox], testbox: str) -> tuple[str, ...]:
    return present[testbox].nodes if testbox in present else ()


def bar(testboxes: Testboxes, testbox: str, reason: str) -> None:
    """Quarantine a testbox until a person, or whatever quarantined it, releases it."""
    if testboxes.set_state(testbox, "quarantined", reason):
        testboxes.move(testbox, Quarantined(reason))


def _fail(
    present: Mapping[str, Testbox],
    settings: LabSettings,
    orders: Orders,
    testboxes: Testboxes,
    testbox: str,
    event: Event,
) -> None:
    _bar_if_due(present, settings, orders, testboxes, testboxes.move(testbox, event))


def _bar_if_due(
    present: Mapping[str, Testbox],
    settings: LabSettings,
    orders: Orders,
    testboxes: Testboxes,
    testbox: TestboxStatus,
) -> None:
    why = quarantine_reason(testbox, _allowed_failures(present, settings, testbox.testbox))
    if why is not None and testboxes.states().get(testbox.testbox) == "active":
        bar(testboxes, testbox.testbox, why)
        orders.give_back_budget(testbox.testbox, MORE_ATTEMPTS)


def _allowed_failures(present: Mapping[str, Testbox], settings: LabSettings, testbox: str) -> int:
    return failures_allowed(present[testbox], settings.testboxes) if testbox in present else 0
