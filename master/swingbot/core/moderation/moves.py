"""Where a decision takes a report, and from which states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swingbot.core.model.statuses import ReportAct, ReportState


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    goal: ReportState
    start: tuple[ReportState, ...]
    done: tuple[ReportState, ...]  # states in which it is done already
    hint: Mapping[ReportState, str]  # why it is not possible in each other state


MOVES: Final[Mapping[ReportAct, Move]] = {
    "hold": Move(
        goal="held",
        start=("draft", "queued"),
        done=("held",),
        hint={
            "sending": "it is being sent",
            "sent": "it has been sent",
            "unknown": "it already waits for a person",
            "dropped": "it was dropped",
        },
    ),
    # one of unknown fate is sent again
    "release": Move(
        goal="queued",
        start=("draft", "held", "unknown"),
        done=("queued", "sending", "sent"),
        hint={"dropped": "it was dropped"},
    ),
    "drop": Move(
        goal="dropped",
        start=("draft", "held", "queued", "unknown"),
        done=("dropped",),
        hint={
            "sending": "it is being sent; try again in a moment",
            "sent": "it has been sent",
        },
    ),
}
