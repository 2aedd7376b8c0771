"""What a person may say of a testbox: quarantine it, drain it, let it work again."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import Quarantined, Released
from swingbot.service.ports import Lab, RequestError

RESUMED: Final = "the testbox was resumed since"


def quarantine(lab: Lab, testbox: str, reason: str) -> None:
    """By hand: orders wait until `resume`. Raises RequestError."""
    _set(lab, testbox, "quarantined", reason)


def drain(lab: Lab, testbox: str, reason: str) -> None:
    """What runs ends, nothing new begins until `resume`. Raises RequestError."""
    _set(lab, testbox, "drained", reason)


def resume(lab: Lab, testbox: str) -> None:
    """Take the testbox as it is now: what anchors measured before counts no more. Raises RequestError."""
    _set(lab, testbox, "active", None)


def _set(lab: Lab, testbox: str, state: TestboxState, reason: str | None) -> None:
    with lab.transaction("set testbox") as tx:
        known = tx.testboxes.reasons()
        if testbox not in known or known[testbox][0] == "gone":
            there = ", ".join(
                sorted(name for name, (state_, _) in known.items() if state_ != "gone")
            )
            raise RequestError(f"there is no testbox {testbox!r}; known are {there}")
        tx.testboxes.set_state(testbox, state, reason)
        if state == "quarantined":
            tx.testboxes.move(testbox, Quarantined(reason or "by hand"))
        if state == "active":
            tx.testboxes.screen_again(testbox)
            tx.testboxes.move(testbox, Released("a person let it work again"))
            for anchor in tx.anchors.of_testbox(testbox, "done"):
                tx.anchors.mark(anchor.id, RESUMED)
