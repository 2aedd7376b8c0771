"""Use idle build workers for the kernels that a running bisection is likely to need next."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.bisect.state import Belief, BisectionState
from swingbot.core.model.records import Bisection, Order, Variant
from swingbot.core.plan.queue import AHEAD, KERNELS_AHEAD
from swingbot.core.plan.speculative_builds import builds_ahead
from swingbot.service.ports import Lab, Transaction
from swingbot.service.ports.orders import Orders


def build_ahead(
    lab: Lab,
    tx: Transaction,
    bisection: Bisection,
    variants: Sequence[Variant],
    state: BisectionState,
    belief: Belief,
) -> None:
    """Order speculative builds at the lowest priority, and withdraw those that are
    unlikely by now.

    Orders none while a requested kernel is queued or being built, or while a boot is ordered on a
    testbox that needs its host to itself.
    """
    ahead = []
    if _idle(lab, tx.orders):
        for idx in builds_ahead(state, belief, KERNELS_AHEAD):
            order = tx.orders.ensure_build(variants[idx], AHEAD)
            tx.orders.want(order.id, bisection=bisection.id)
            ahead.append(order.id)
    tx.orders.drop_ahead(bisection.id, AHEAD, ahead)


def _idle(lab: Lab, orders: Orders) -> bool:
    return not any(_comes_first(lab, order) for order in orders.open())


def _comes_first(lab: Lab, order: Order) -> bool:
    if order.testbox is None:
        return order.priority > AHEAD
    testbox = lab.testboxes.present.get(order.testbox)
    return testbox is None or not testbox.repeatable
