"""A kernel that was pruned from the artifact store and is needed again is built again; the same key gives the same image, or nothing is booted."""

from __future__ import annotations

from swingbot.core.model.artifact import Pruned
from swingbot.core.model.records import Order
from swingbot.service.ports import Lab, Transaction


def build_again(lab: Lab, tx: Transaction, boot: Order, pruned: Pruned) -> None:
    """Let a boot order wait for its kernel to be built once more; it fails if that was tried since the kernel was pruned."""
    build = tx.orders.of_build(boot.build_key)
    if build is None:
        tx.orders.set_state(
            boot.id, "failed", f"its kernel was {pruned.why}, and there is no order that built it"
        )
        return
    made, ago, _ = tx.attempts.made(build.id)
    if build.state not in ("waiting", "ready", "running"):
        if made and ago < (lab.now() - pruned.at).total_seconds():
            how = (
                f"it could not be built again: {build.reason}"
                if build.state == "failed"
                else "building it again did not give the same image"
            )
            tx.orders.set_state(boot.id, "failed", f"its kernel was {pruned.why}; {how}")
            return
        tx.orders.reopen(build.id, budget=made + 3)
    if boot.state != "waiting":
        tx.orders.set_state(boot.id, "waiting")
