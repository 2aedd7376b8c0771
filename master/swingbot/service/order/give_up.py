"""Abandon the boots of an experiment's kernel that never comes up on a testbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from swingbot.core.model.records import Arm, BootRecord, Comparison, Order
from swingbot.core.plan.boot_series import series_for
from swingbot.service.ports import Lab, Transaction

# Number of failed boots without a single successful one. A hanging boot lasts until its
# deadline, and the other rows of the table wait for it.
FEWEST: Final = 3


def give_up_arms(lab: Lab, tx: Transaction) -> None:
    """Cancel the remaining boots of an arm on a testbox where none of its boots came up."""
    for comparison in tx.comparisons.open():
        if comparison.kind != "experiment" or comparison.status != "running":
            continue
        orders = tx.orders.wanted(comparison=comparison.id)
        for arm in comparison.arms:
            for testbox, spec in comparison.parts:
                _give_up(lab, tx, comparison, arm, testbox, arm.spec(spec), orders)


def _give_up(
    lab: Lab,
    tx: Transaction,
    comparison: Comparison,
    arm: Arm,
    testbox: str,
    spec: str,
    orders: Sequence[Order],
) -> None:
    variant = tx.variants.get(arm.variant)
    key = (variant.build_key, testbox, spec)
    remaining = [
        order
        for order in orders
        if (order.build_key, order.testbox, order.spec) == key
        and order.state in ("waiting", "ready")
    ]
    if not remaining:
        return
    boots = _boots(lab, tx, comparison, variant.build_key, testbox, spec)
    if len(boots) >= FEWEST and not any(boot.outcome == "up" for boot in boots):
        why = f"none of {len(boots)} boots came up, the last was {boots[-1].trouble}"
        for order in remaining:
            tx.orders.set_state(order.id, "cancelled", why)


def _boots(
    lab: Lab, tx: Transaction, comparison: Comparison, build_key: str, testbox: str, spec: str
) -> list[BootRecord]:
    build = tx.builds.by_key([build_key]).get(build_key)
    if build is None or build.image_sha256 is None:
        return []
    series = series_for(lab.catalogue.testboxes.known(testbox), comparison)
    return tx.boots.find(build.image_sha256, testbox, spec, series, comparison.numbers)
