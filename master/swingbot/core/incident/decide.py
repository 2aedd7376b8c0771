"""A person's decisions about an incident and the status that follows.

Repeating one changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from swingbot.core import limits
from swingbot.core.model.statuses import IncidentStatus, ReportKind
from swingbot_jobs.codec import Sparse, at_most_characters, at_most_entries, one_of
from swingbot_jobs.printable import printable

Act = Literal["close", "reopen", "expected", "fixed-by", "invalid"]
ACTS: Final[tuple[Act, ...]] = ("expected", "fixed-by", "invalid", "close", "reopen")
MOVES: Final = ("merge", "split")  # of sightings
KINDS_OF_ITS_END: Final[tuple[ReportKind, ...]] = ("retraction", "fixed")

_COMMIT: Final = at_most_characters(limits.COMMIT_NAME_CHARACTERS)
_OTHERS: Final = at_most_entries(limits.TABLE_ROWS)

# What each act makes of an incident. `fixed-by` leaves it open until a tip with that commit was
# measured.
_BECOMES: Final[dict[Act, IncidentStatus]] = {
    "close": "closed",
    "reopen": "open",
    "expected": "expected",
    "fixed-by": "open",
    "invalid": "invalid",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentDecision:
    """What a person decides about an incident; also the JSON of a request (docs/remote.md)."""

    act: Annotated[str, one_of(*ACTS, *MOVES)]
    reason: Sparse[str | None] = None  # WHY_CHARACTERS without spaces that are too many
    commit: Annotated[Sparse[str | None], _COMMIT] = None  # of `fixed-by`
    others: Annotated[Sparse[tuple[str, ...]], _OTHERS] = ()  # incidents to be merged into it
    bisection: Sparse[str | None] = None  # of `split`: whose culprit becomes separate


class InvalidState(ValueError):
    """The decision does not apply to the incident's status; the message says what does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusDecision:
    """`status` is the new one; `changes` is False if it was set already.

    With `withdraw`, mails that have not been sent must not be sent; for a reopened incident only
    those that declared it over (`KINDS_OF_ITS_END`).
    """

    status: IncidentStatus
    changes: bool
    withdraw: bool


def decide(
    name: str,
    status: IncidentStatus,
    act: Act,
    *,
    merged_into: str | None = None,
    same_fix: bool = False,
) -> StatusDecision:
    """Apply `act` to incident `name` (i3). Raises InvalidState.

    `same_fix`: the incident already waits for that commit.
    """
    if status == "duplicate":
        raise InvalidState(
            f"{name} was merged into {merged_into}: use {merged_into}, or separate {name} again"
            f" with `swingbot incident split {name}`"
        )
    goal = _BECOMES[act]
    if act == "fixed-by":
        if status == "fixed" and same_fix:
            return StatusDecision(status="fixed", changes=False, withdraw=False)
        return StatusDecision(
            status=goal, changes=not (same_fix and status == "open"), withdraw=False
        )
    return StatusDecision(status=goal, changes=goal != status, withdraw=goal != status)


def tidy(reason: str | None) -> str | None:
    """One line of printable text, or None. Raises InvalidState if it is too long."""
    line = " ".join(printable(reason or "", " ").split())
    if len(line) > limits.WHY_CHARACTERS:
        raise InvalidState(
            f"the reason has {len(line)} characters; at most {limits.WHY_CHARACTERS} are stored"
        )
    return line or None
