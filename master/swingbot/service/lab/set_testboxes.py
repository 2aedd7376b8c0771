"""Change the state of a testbox by hand: quarantine, drain, resume."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import Quarantined, Released
from swingbot.core.text.nearest import instead_of
from swingbot.service.ports import RequestError
from swingbot.service.ports.testboxes import Testboxes
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


def resume(
    transaction: OpenTransaction,
    testbox: str,
    *,
    who: str = "a person",
    seen: str | None = None,
) -> TestboxState:
    """Resume a testbox in its current state: it is not compared with earlier anchors any more.

    Returns the state before. `seen`: the `condition` that a person decided about; nothing is done
    if it is in service again. Raises RequestError, also if it is out of service for another reason.
    """
    with transaction("set testbox") as tx:
        state, reason = _known(tx.testboxes, testbox)
        if seen is not None and state == "active":
            return state
        if seen not in (None, condition(state, reason)):
            raise RequestError(f"{testbox} is {condition(state, reason)} by now")
        tx.testboxes.set_state(testbox, "active", None)
        tx.testboxes.screen_again(testbox)
        tx.testboxes.move(testbox, Released(f"released by {who}"))
        for anchor in tx.anchors.of_testbox(testbox, "done"):
            tx.anchors.mark(anchor.id, RESUMED)
    return state


def condition(state: TestboxState, reason: str | None) -> str:
    """State and reason on one line of at most 200 characters."""
    return " ".join(f"{state}: {reason}".split() if reason else (state,))[:200]


def out_of_service(transaction: OpenTransaction, testbox: str) -> str:
    """Return the condition of a testbox that takes no boots. Raises RequestError for another."""
    with transaction("testbox state") as tx:
        state, reason = _known(tx.testboxes, testbox)
    if state == "active":
        raise RequestError(f"{testbox} is in service: there is nothing to return")
    return condition(state, reason)


def _known(testboxes: Testboxes, testbox: str) -> tuple[TestboxState, str | None]:
    known = testboxes.reasons()
    if testbox not in known or known[testbox][0] == "gone":
        names = [name for name, (state, _) in known.items() if state != "gone"]
        raise RequestError(f"testbox {testbox!r} does not exist; {instead_of(testbox, names)}")
    return known[testbox]


def _set(transaction: OpenTransaction, testbox: str, state: TestboxState, reason: str) -> None:
    with transaction("set testbox") as tx:
        _known(tx.testboxes, testbox)
        tx.testboxes.set_state(testbox, state, reason)
        if state == "quarantined":
            tx.testboxes.move(testbox, Quarantined(reason or "by hand"))
