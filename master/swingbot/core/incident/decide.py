"""What a person may say about an incident, and what it is from then on. Saying the same thing twice changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from swingbot.core.model.statuses import IncidentStatus, ReportKind
from swingbot_jobs.printable import printable

Act = Literal["close", "reopen", "expected", "fixed-by", "invalid"]
ACTS: Final[tuple[Act, ...]] = ("expected", "fixed-by", "invalid", "close", "reopen")
LONGEST_REASON: Final = 500
KINDS_OF_ITS_END: Final[tuple[ReportKind, ...]] = ("retraction", "fixed")

# What each act makes of an incident. `fixed-by` leaves it open until a tip with that commit was measured.
_BECOMES: Final[dict[Act, IncidentStatus]] = {
    "close": "closed",
    "reopen": "open",
    "expected": "expected",
    "fixed-by": "open",
    "invalid": "invalid",
}


class InvalidState(ValueError):
    """The incident is in a state in which that cannot be said of it; the message says what can be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`status` is the new one; `changes` is False where it was so already; `withdraw` says that mails which have not left must not leave any more.

    Of an incident that is open again these are only those that said it was over (`KINDS_OF_ITS_END`).
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
) -> Decision:
    """What `act` does to incident `name` (i3). `same_fix`: that very commit is what it waits for already. Raises NotNow."""
    if status == "duplicate":
        raise InvalidState(
            f"{name} was merged into {merged_into}: say it of {merged_into}, or take {name} out again with `swingbot incident split {name}`"
        )
    goal = _BECOMES[act]
    if act == "fixed-by":
        if status == "fixed" and same_fix:
            return Decision(status="fixed", changes=False, withdraw=False)
        return Decision(status=goal, changes=not (same_fix and status == "open"), withdraw=False)
    return Decision(status=goal, changes=goal != status, withdraw=goal != status)


def tidy(reason: str | None) -> str | None:
    """One line of printable text, or None. Raises NotNow for one that is too long."""
    line = " ".join(printable(reason or "", " ").split())
    if len(line) > LONGEST_REASON:
        raise InvalidState(
            f"the reason has {len(line)} characters; {LONGEST_REASON} are the most that is kept"
        )
    return line or None
