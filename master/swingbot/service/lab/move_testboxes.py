"""Keep what each testbox does while the brain hands it out, hears of it and gives it up; quarantine one that fails again and again."""

from __future__ import annotations

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
from swingbot.service.ports import Lab, Transaction
from swingbot.service.ports.testboxes import Testboxes
from swingbot_jobs.contract.orders import OutcomeStatus

MORE_ATTEMPTS: Final = 3  # that the orders of a quarantined testbox may make once it is back


def hand_out(lab: Lab, testboxes: Testboxes, testbox: str, attempt: int) -> None:
    """The testbox, and where it is a cluster its nodes, are an attempt's."""
    for name in (testbox, *_nodes(lab, testbox)):
        testboxes.move(name, Assigned(attempt))


def outcome_came(
    lab: Lab, tx: Transaction, order: Order, status: OutcomeStatus, reason: str | None
) -> None:
    """An attempt has ended by itself: the testbox is back, or its driver said that it is not."""
    if order.testbox is None:
        return
    _give_nodes_back(lab, tx.testboxes, order.testbox, status)
    if status == "infra":
        _fail(lab, tx, order.testbox, AttemptFailed(reason or "no reason was given"))
        return
    box = tx.testboxes.move(
        order.testbox,
        AttemptEnded(status == "up", status.replace("_", " ") + (f": {reason}" if reason else "")),
    )
    _bar_if_due(lab, tx, box)
    most = _borne(lab, box.testbox)
    if most and box.down and box.down % most == 0:
        # so many kernels in a row did not come up: is it them, or the testbox?
        order_anchor(tx, box.testbox)


def gave_up(lab: Lab, tx: Transaction, order: Order, reason: str, *, silent: bool) -> None:
    """The brain gave an attempt up. `silent`: nothing was heard of it, so nobody knows where the testbox is."""
    if order.testbox is not None:
        _give_nodes_back(lab, tx.testboxes, order.testbox, reason)
        _fail(lab, tx, order.testbox, ControllerLost(reason) if silent else AttemptFailed(reason))


def withdrew(lab: Lab, tx: Transaction, order: Order, reason: str) -> None:
    """Nobody wants the order any more; its executor ends itself."""
    if order.testbox is not None:
        _give_nodes_back(lab, tx.testboxes, order.testbox, reason)
        tx.testboxes.move(order.testbox, AttemptCancelled(reason))


def _give_nodes_back(lab: Lab, testboxes: Testboxes, testbox: str, why: str) -> None:
    """The nodes of a cluster are free again, each as it is. What failed counts for the cluster: which of them it was is not for sure."""
    for name in _nodes(lab, testbox):
        testboxes.move(name, AttemptCancelled(f"given back by cluster {testbox}: {why}"))


def _nodes(lab: Lab, testbox: str) -> tuple[str, ...]:
    return lab.testboxes.present[testbox].nodes if testbox in lab.testboxes.present else ()


def bar(testboxes: Testboxes, testbox: str, reason: str) -> None:
    """Let it not work any more, until a person (or what put it there) lets it."""
    if testboxes.set_state(testbox, "quarantined", reason):
        testboxes.move(testbox, Quarantined(reason))


def _fail(lab: Lab, tx: Transaction, testbox: str, event: Event) -> None:
    _bar_if_due(lab, tx, tx.testboxes.move(testbox, event))


def _bar_if_due(lab: Lab, tx: Transaction, box: TestboxStatus) -> None:
    why = quarantine_reason(box, _borne(lab, box.testbox))
    if why is not None and tx.testboxes.states().get(box.testbox) == "active":
        bar(tx.testboxes, box.testbox, why)
        tx.orders.give_back_budget(box.testbox, MORE_ATTEMPTS)


def _borne(lab: Lab, testbox: str) -> int:
    return (
        failures_allowed(lab.testboxes.present[testbox], lab.policies.boxes)
        if testbox in lab.testboxes.present
        else 0
    )
