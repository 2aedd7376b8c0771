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

# Number of failed boots without a single successful one. A hanging boot lasts until its
# deadline, and the other rows of the table wait for it.
FEWEST: Final = 3


def give_up_arms(testboxes: KnownTestboxes, tx: Transaction) -> None:
    """Cancel the remaining boots of an arm on a testbox where none of its boots came up."""
    for comparison in tx.comparisons.open():
        if comparison.kind not in REQUESTED or comparison.status != "running":
            continue
        orders = tx.orders.wanted(comparison=comparison.id)
        for arm in comparison.arms:
            build_key = tx.variants.get(arm.variant).build_key
            for testbox, spec in comparison.parts:
                key = (build_key, testbox, arm.spec(spec))
                _give_up(testboxes, tx, comparison, key, orders)


def _give_up(
    testboxes: KnownTestboxes,
    tx: Transaction,
    comparison: Comparison,
    key: tuple[str, str, str],
    orders: Sequence[Order],
) -> None:
    remaining = [
        order
        for order in orders
        if (order.build_key, order.testbox, order.spec) == key
        and order.state in ("waiting", "ready")
    ]
    if not remaining:
        return
    boots = _boots(testboxes, tx.builds, tx.boots, comparison, *key)
    if len(boots) >= FEWEST and not any(boot.outcome == "up" for boot in boots):
        why = f"none of {len(boots)} boots came up, the last was {boots[-1].trouble}"
        for order in remaining:
            tx.orders.set_state(order.id, "cancelled", why)


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
