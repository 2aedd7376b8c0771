"""Change the state of a testbox by hand: quarantine, drain, resume."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import Quarantined, Released
from swingbot.core.text.nearest import instead_of
from swingbot.service.ports import RequestError
from swingbot.service.ports.transaction import OpenTransaction

RESUMED: Final = "the testbox was resumed later"


def quarantine(transaction: OpenTransaction, testbox: str, reason: str) -> None:
    """Quarantine a testbox by hand: orders wait until `resume`. Raises RequestError."""
    _set(transaction, testbox, "quarantined", reason)


def drain(transaction: OpenTransaction, testbox: str, reason: str) -> None:
    """Drain a testbox: running work completes, nothing new starts until `resume`.

    Raises RequestError.
    """
    _set(transaction, testbox, "drained", reason)


def resume(transaction: OpenTransaction, testbox: str) -> None:
    """Resume a testbox in its current state: it is not compared with earlier anchors any more.

    Raises RequestError.
    """
    _set(transaction, testbox, "active", None)


def _set(
    transaction: OpenTransaction, testbox: str, state: TestboxState, reason: str | None
) -> None:
    with transaction("set testbox") as tx:
        known = tx.testboxes.reasons()
        if testbox not in known or known[testbox][0] == "gone":
            names = [name for name, (state_, _) in known.items() if state_ != "gone"]
            raise RequestError(f"testbox {testbox!r} does not exist; {instead_of(testbox, names)}")
        tx.testboxes.set_state(testbox, state, reason)
        if state == "quarantined":
            tx.testboxes.move(testbox, Quarantined(reason or "by hand"))
        if state == "active":
            tx.testboxes.screen_again(testbox)
            tx.testboxes.move(testbox, Released("released by a person"))
            for anchor in tx.anchors.of_testbox(testbox, "done"):
                tx.anchors.mark(anchor.id, RESUMED)
