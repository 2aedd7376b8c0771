"""Create orders for comparisons and bisections, and advance orders until they can be dispatched."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime

from swingbot.core.model.records import BootKey, Comparison, OpenOrder, Variant
from swingbot.core.model.statuses import OrderState
from swingbot.core.model.testboxes import KnownTestboxes
from swingbot.core.plan.blocks import block_order
from swingbot.core.plan.boot_series import series_for
from swingbot.core.plan.queue import PRIORITY
from swingbot.service.order.rebuild import build_again
from swingbot.service.order.vouchers import end_unvouched
from swingbot.service.ports import Artifacts, Transaction
from swingbot.service.ports.orders import Orders


def want_boot(
    orders: Orders,
    variant: Variant,
    key: BootKey,
    priority: int,
    *,
    bisection: int,
) -> None:
    """Order one boot of a bisection and the kernel it needs. A second call changes nothing."""
    orders.want(orders.ensure_build(variant, priority).id, bisection=bisection)
    orders.ensure_boots([(key, variant)], priority, bisection=bisection)


def place_comparisons(testboxes: KnownTestboxes, tx: Transaction) -> None:
    """Place the orders of waiting comparisons: all kernels first, then boots in blocks, each arm
    once per block.

    Trusted kernels are built first. Their objects are kept, and an untrusted build of the same
    compiler and configuration starts from a copy of them.
    """
    for comparison in tx.comparisons.open():
        if comparison.status != "waiting":
            continue
        variants = [tx.variants.get(arm.variant) for arm in comparison.arms]
        for variant in sorted(variants, key=lambda variant: variant.trust == "untrusted"):
            build = tx.orders.ensure_build(variant, PRIORITY[comparison.kind])
            tx.orders.want(build.id, comparison=comparison.id)
        boots = [
            boot
            for block in range(comparison.boots)
            for testbox, spec in comparison.parts
            for boot in _block(testboxes, comparison, variants, testbox, spec, block)
        ]
        tx.orders.ensure_boots(boots, PRIORITY[comparison.kind], comparison=comparison.id)
        tx.comparisons.set_status(comparison.id, "running")


def _block(
    testboxes: KnownTestboxes,
    comparison: Comparison,
    variants: Sequence[Variant],
    testbox: str,
    spec: str,
    block: int,
) -> Iterator[tuple[BootKey, Variant]]:
    series = series_for(testboxes.known(testbox), comparison)
    for place in block_order(len(variants), block, comparison.id):
        key = BootKey(
            build_key=variants[place].build_key,
            testbox=testbox,
            spec=comparison.arms[place].spec(spec),
            series=series,
            k=comparison.first_k + block,
            purpose=comparison.purpose,
        )
        yield key, variants[place]


def settle_orders(
    artifacts: Artifacts, testboxes: KnownTestboxes, now: Callable[[], datetime], tx: Transaction
) -> None:
    """Advance open orders without a worker: done if the answer is known, ready if all they need is
    available, cancelled if no longer needed, failed if its token no longer vouches for it.
    """
    end_unvouched(tx.orders, tx.variants)
    if unwanted := [order.id for order in tx.orders.unwanted()]:
        tx.orders.set_states(unwanted, "cancelled", "no longer needed")
    orders = tx.orders.open()
    builds = tx.builds.by_key({order.build_key for order in orders})
    pruned = {
        key: note
        for key, build in builds.items()
        if build.image_sha256 and (note := artifacts.pruned(build.image_sha256))
    }
    failed_builds = {
        order.build_key: order
        for order in tx.orders.failed("build", {order.build_key for order in orders})
    }
    building = {order.build_key for order in orders if order.kind == "build"} - builds.keys()
    held = _held(testboxes, tx.orders, orders, building | pruned.keys())
    answered = tx.orders.answered()
    settled: dict[OrderState, list[int]] = {"waiting": [], "ready": [], "done": []}
    for order in orders:
        if order.state == "running":
            continue
        build = builds.get(order.build_key)
        if order.kind == "build":
            there = build is not None and order.build_key not in pruned
            _settle(settled, order, "done" if there else "ready")
        elif build is None:
            lost = failed_builds.get(order.build_key)
            if lost is not None:
                tx.orders.set_state(
                    order.id,
                    "failed",
                    f"the lab failed to build its kernel: {lost.reason}",
                )
        elif build.image_sha256 is None:
            tx.orders.set_state(order.id, "failed", f"the kernel {build.trouble}")
        elif order.id in answered:
            tx.orders.set_state(order.id, "done", "the same boot of an identical image exists")
        elif order.build_key in pruned:
            build_again(now, tx.orders, tx.attempts, order, pruned[order.build_key])
        else:
            _settle(settled, order, "waiting" if order.id in held else "ready")
    for state, numbers in settled.items():
        if numbers:
            tx.orders.set_states(numbers, state)


def _held(
    testboxes: KnownTestboxes,
    orders: Orders,
    open_orders: Sequence[OpenOrder],
    unbuilt: Collection[str],
) -> set[int]:
    """Return boots of comparisons that wait for the kernel of the other side, so that the sides
    alternate.

    Otherwise all boots of the base run while the head is being built, and a change of the testbox
    in the meantime looks like an effect. Boots of a repeatable testbox do not wait, because there a
    boot gives the same result at any time.
    """
    if not unbuilt:
        return set()
    boots = {order.id: order for order in open_orders if order.testbox is not None}
    repeatable = {
        name: testboxes.known(name).repeatable
        for name in {order.testbox for order in boots.values() if order.testbox is not None}
    }
    held: set[int] = set()
    for wanted in orders.open_boots_of_comparisons().values():
        of_comparison = [boots[id] for id in wanted if id in boots]
        if any(order.build_key in unbuilt for order in of_comparison):
            held |= {order.id for order in of_comparison if not repeatable[order.testbox or ""]}
    return held


def _settle(settled: Mapping[OrderState, list[int]], order: OpenOrder, state: OrderState) -> None:
    if order.state != state:
        settled[state].append(order.id)
