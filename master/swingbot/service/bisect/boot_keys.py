"""The boots that a bisection wants: their keys and orders."""

from __future__ import annotations

from swingbot.core.model.bisection import WantedBoot
from swingbot.core.model.records import Bisection, BootKey, Variant
from swingbot.core.plan.queue import PRIORITY
from swingbot.service.kernel.variants import in_layout
from swingbot.service.order.place import want_boot
from swingbot.service.ports import Transaction
from swingbot_jobs.contract.kconfig import Kconfigs


def boot_key(bisection: Bisection, variant: Variant, k: int, testbox: int = 0) -> BootKey:
    return BootKey(
        build_key=variant.build_key,
        testbox=bisection.testboxes[testbox],
        spec=bisection.spec,
        series=bisection.series,
        k=k,
    )


def order_boot(
    kconfigs: Kconfigs, tx: Transaction, bisection: Bisection, kernel: Variant, want: WantedBoot
) -> None:
    """Order a boot of `kernel` in the layout of `want`, and its build. A second call changes
    nothing.
    """
    variant = in_layout(kconfigs, tx.trees, tx.variants, kernel, want.layout)
    key = boot_key(bisection, variant, want.k, want.testbox)
    want_boot(tx.orders, variant, key, PRIORITY["bisection"], bisection=bisection.id)
