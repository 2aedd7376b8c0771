"""Build a kernel again that was pruned from the artifact store and is needed.

The same key gives the same image, or nothing is booted.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from swingbot.core.model.artifact import Pruned
from swingbot.core.model.records import OpenOrder
from swingbot.service.ports.attempts import Attempts
from swingbot.service.ports.orders import Orders


def build_again(
    now: Callable[[], datetime], orders: Orders, attempts: Attempts, boot: OpenOrder, pruned: Pruned
) -> None:
    """Make a boot order wait until its kernel is rebuilt; fail it if that was already tried since
    the kernel was pruned.
    """
    build = orders.of_build(boot.build_key)
    if build is None:
        orders.set_state(
            boot.id,
            "failed",
            f"its kernel was {pruned.why}, and the order that built it is missing",
        )
        return
    made, ago, _ = attempts.made(build.id)
    if build.state not in ("waiting", "ready", "running"):
        if made and ago < (now() - pruned.at).total_seconds():
            how = (
                f"it could not be rebuilt: {build.reason}"
                if build.state == "failed"
                else "the rebuild did not give the same image"
            )
            orders.set_state(boot.id, "failed", f"its kernel was {pruned.why}; {how}")
            return
        orders.reopen(build.id, budget=made + 3)
    if boot.state != "waiting":
        orders.set_state(boot.id, "waiting")
