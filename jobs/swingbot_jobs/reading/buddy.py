"""Free blocks of the buddy allocator by node, zone and order, and the unusable share for each
order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_KEY: Final = re.compile(r"Node\.(?P<node>\d{1,5})\.zone\.(?P<zone>\w{1,32})\.(?P<order>\d{1,2})")


class Zone(NamedTuple):
    """A zone of a memory node. Sorts by node number, then by name."""

    node: int
    zone: str


def key(zone: Zone, order: int) -> str:
    """Return the name of one zone and order in a snapshot of /proc/buddyinfo:
    `Node.0.zone.Normal.3`.
    """
    return f"Node.{zone.node}.zone.{zone.zone}.{order}"


def place(name: str) -> tuple[Zone, int] | None:
    """Return the zone and order from which `key` built `name`; None for any other name."""
    match = _KEY.fullmatch(name)
    return (Zone(int(match["node"]), match["zone"]), int(match["order"])) if match else None


def by_zone(values: Mapping[str, float]) -> dict[Zone, list[float]]:
    """Return the values of each zone by order, from 0 on.

    A zone that lacks an order is left out.
    """
    zones: dict[Zone, dict[int, float]] = {}
    for name, value in values.items():
        if at := place(name):
            zones.setdefault(at[0], {})[at[1]] = value
    return {
        zone: [orders[order] for order in range(len(orders))]
        for zone, orders in sorted(zones.items())
        if max(orders) == len(orders) - 1
    }


def unusable_index(blocks: Sequence[float], order: int) -> float:
    """Return the unusable free space index of a zone for `order`: 0 if all free pages are usable,
    1 if none are.

    With k_i free blocks of 2^i pages, F = (T - sum over i >= order of 2^i k_i) / T, where
    T = sum over i of 2^i k_i (Gorman and Whitcroft, 2006). Without free pages it is 1, as in
    unusable_free_index() of mm/vmstat.c, whose values are those of
    /sys/kernel/debug/extfrag/unusable_index.
    """
    pages = [count * 2.0**size for size, count in enumerate(blocks)]
    free = sum(pages)
    return sum(pages[:order]) / free if free else 1.0


def unusable(snapshot: Mapping[str, float]) -> dict[str, float]:
    """Return the unusable free space index of each zone and order, by the names of its blocks."""
    return {
        key(zone, order): unusable_index(blocks, order)
        for zone, blocks in by_zone(snapshot).items()
        for order in range(len(blocks))
    }
