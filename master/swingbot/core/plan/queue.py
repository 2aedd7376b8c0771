"""Select the orders to hand out: by priority, a few at a time, one boot per testbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from swingbot.core.model.records import Order
from swingbot.core.plan.kernel_queue import KernelQueue

KERNEL_BUILDER: Final = "kernel"
# Requests of people first, then bisections, then proof of their culprits, then background work.
PRIORITY: Final = {
    "asked": 50,
    "experiment": 50,
    "bisection": 40,
    "prove": 40,
    "still": 40,
    "attribute": 35,
    "gate": 32,
    "watch": 30,
    "anchor": 10,
}
# Two kernel orders keep a worker busy while an outcome is in transit. With more, a queue would
# build up that ignores priorities.
KERNELS_AHEAD: Final = 2
# Priority of speculative builds (`service/bisect/build_ahead.py`), which run only when no other
# build is waiting.
AHEAD: Final = 5
# Seconds to wait after the n-th failed attempt. A full disk or a lost mirror rarely recovers at
# once.
_BACKOFF: Final = (0.0, 5.0, 30.0, 120.0)


def builder_of(order: Order) -> str:
    """Return the Buildbot builder for an order."""
    return KERNEL_BUILDER if order.kind == "build" else f"boot-{order.testbox}"


def patience(attempts_made: int) -> float:
    """Return the seconds to wait before the next attempt."""
    return _BACKOFF[min(attempts_made, len(_BACKOFF) - 1)]


def choose(
    ready: Sequence[Order],
    *,
    busy: Mapping[str, int],
    leased: Collection[str],
    usable: Collection[str],
    nodes: Mapping[str, Collection[str]] = MappingProxyType({}),
    kernels: KernelQueue | None = None,
) -> list[Order]:
    """Select the orders to hand out now from `ready` (highest priority first, then by turn).

    `busy` counts open dispatches per builder. `leased` are testboxes at work, `usable` those that
    may take work, `nodes` the members of each cluster. A cluster starts when all of its nodes are
    free; while it waits, its nodes start nothing of lower priority. `kernels` counts builds by
    compiler; without it, all builds share one queue.
    """
    room, taken = dict(busy), set(leased)
    built = Counter(kernels.under_way) if kernels else Counter({"": room.get(KERNEL_BUILDER, 0)})
    queues = kernels or KernelQueue()
    picked: list[Order] = []
    for order in ready:
        if order.kind == "build":
            ahead = KERNELS_AHEAD if order.priority > AHEAD else 1
            if built[queues.key(order)] < queues.limit(order, ahead):
                built[queues.key(order)] += 1
                picked.append(order)
            continue
        builder = builder_of(order)
        if room.get(builder, 0) >= 1:
            continue
        if order.testbox is not None:
            together = {order.testbox, *nodes.get(order.testbox, ())}
            if order.testbox in taken or order.testbox not in usable:
                continue
            waits = bool(together & taken)
            taken |= together
            if waits:
                continue
        room[builder] = room.get(builder, 0) + 1
        picked.append(order)
    return picked
