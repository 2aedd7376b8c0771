"""What a person may say of a testbox: quarantine it, drain it, let it work again."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.box import Barred, Freed
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


def _set(lab: Lab, testbox: str, state: str, reason: str | None) -> None:
    with lab.transaction("set testbox") as store:
        known = store.testbox_reasons()
        if testbox not in known or known[testbox][0] == "gone":
            there = ", ".join(
                sorted(name for name, (state_, _) in known.items() if state_ != "gone")
            )
            raise RequestError(f"there is no testbox {testbox!r}; known are {there}")
        store.set_testbox(testbox, state, reason)
        if state == "quarantined":
            store.move_box(testbox, Barred(reason or "by hand"))
        if state == "active":
            store.screen_again(testbox)
            store.move_box(testbox, Freed("a person let it work again"))
            for anchor in store.anchors(testbox, "done"):
                store.mark_anchor(anchor.id, RESUMED)
