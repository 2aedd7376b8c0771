"""Use idle build workers for the kernels that a running bisection is likely to need next."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.bisect.state import Belief, BisectionState
from swingbot.core.model.records import Bisection, Variant
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.queue import AHEAD, KERNELS_AHEAD
from swingbot.core.plan.speculative_builds import builds_ahead
from swingbot.service.ports.orders import Orders


def build_ahead(
    testboxes: KnownTestboxes,
    orders: Orders,
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
    if _idle(testboxes, orders):
        for idx in builds_ahead(state, belief, KERNELS_AHEAD):
            order = orders.ensure_build(variants[idx], AHEAD)
            orders.want(order.id, bisection=bisection.id)
            ahead.append(order.id)
    orders.drop_ahead(bisection.id, AHEAD, ahead)


def _idle(testboxes: KnownTestboxes, orders: Orders) -> bool:
    repeatable = {name for name, testbox in testboxes.present.items() if testbox.repeatable}
    builds = orders.open(kind="build")  # few, and in a busy lab there is always one
    if any(order.priority > AHEAD for order in builds):
        return False
    names = {order.testbox or "" for order in orders.open(kind="boot")}
    return all(name in repeatable for name in names)
