"""Build a kernel again that was pruned from the artifact store and is needed.

The same key gives the same image, or nothing is booted.
"""

from __future__ import annotations

from swingbot.core.model.artifact import Pruned
from swingbot.core.model.records import OpenOrder
from swingbot.service.ports import Lab, Transaction


def build_again(lab: Lab, tx: Transaction, boot: OpenOrder, pruned: Pruned) -> None:
    """Make a boot order wait until its kernel is rebuilt; fail it if that was already tried since
    the kernel was pruned.
    """
    build = tx.orders.of_build(boot.build_key)
    if build is None:
        tx.orders.set_state(
            boot.id,
            "failed",
            f"its kernel was {pruned.why}, and the order that built it is missing",
        )
        return
    attempts, ago, _ = tx.attempts.made(build.id)
    if build.state not in ("waiting", "ready", "running"):
        if attempts and ago < (lab.clock.now() - pruned.at).total_seconds():
            how = (
                f"it could not be rebuilt: {build.reason}"
                if build.state == "failed"
                else "the rebuild did not give the same image"
            )
            tx.orders.set_state(boot.id, "failed", f"its kernel was {pruned.why}; {how}")
            return
        tx.orders.reopen(build.id, budget=attempts + 3)
    if boot.state != "waiting":
        tx.orders.set_state(boot.id, "waiting")
