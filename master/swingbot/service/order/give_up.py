"""Abandon the boots of a table's kernel that never comes up on a testbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.model.records import BootRecord, Comparison, Order
from swingbot.core.model.statuses import REQUESTED
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.boot_series import series_for
from swingbot.service.ports import Transaction
from swingbot.service.ports.boots import Boots
from swingbot.service.ports.builds import KernelBuilds
from swingbot.service.ports.orders import Orders

# Number of failed boots without a single successful one. A hanging boot lasts until its
# deadline, and the other rows of the table wait for it.
FEWEST: Final = 3


def give_up_arms(testboxes: KnownTestboxes, tx: Transaction) -> None:
    """Cancel the remaining boots of an arm on a testbox where none of its boots came up.

    A table costs a statement only where it has more boots than it takes to give one up.
    """
    for comparison in tx.comparisons.open():
        if comparison.kind not in REQUESTED or comparison.status != "running":
            continue
        if comparison.boots <= FEWEST:
            continue
        arms: dict[tuple[str, str, str], list[Order]] = {}
        for order in tx.orders.wanted(comparison=comparison.id):
            if order.kind == "boot" and order.testbox and order.spec:
                arms.setdefault((order.build_key, order.testbox, order.spec), []).append(order)
        for key, wanted in arms.items():
            remaining = [order for order in wanted if order.state in ("waiting", "ready")]
            if remaining and sum(order.state == "done" for order in wanted) >= FEWEST:
                made = _boots(testboxes, tx.builds, tx.boots, comparison, *key)
                _give_up(tx.orders, remaining, made)


def _give_up(orders: Orders, remaining: Sequence[Order], made: Sequence[BootRecord]) -> None:
    if len(made) >= FEWEST and not any(boot.outcome == "up" for boot in made):
        why = f"none of {len(made)} boots came up, the last was {made[-1].trouble}"
        for order in remaining:
            orders.set_state(order.id, "cancelled", why)


def _boots(
    testboxes: KnownTestboxes,
    builds: KernelBuilds,
    boots: Boots,
    comparison: Comparison,
    build_key: str,
    testbox: str,
    spec: str,
) -> list[BootRecord]:
    build = builds.by_key([build_key]).get(build_key)
    if build is None or build.image_sha256 is None:
        return []
    series = series_for(testboxes.known(testbox), comparison)
    return boots.find(build.image_sha256, testbox, spec, series, comparison.numbers)
