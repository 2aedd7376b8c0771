"""The activity of a testbox: a state machine without a clock or memory of its own.

    idle -> leased -> booting -> running -> returning -> idle   one boot, as handed out, reported
    any of them -> lost                                         controller silent, no return
    idle, lost -> quarantined -> idle                           cleared by person or anchor

Whether a testbox may work (active, drained, quarantined) is requested separately: a drained one
completes its work and then is idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from swingbot.core import limits
from swingbot_jobs.printable import printable


class TestboxPhase(StrEnum):
    IDLE = "idle"
    LEASED = "leased"  # handed to an attempt; no controller has touched it yet
    BOOTING = "booting"  # booting the kernel under test
    RUNNING = "running"  # in the kernel under test
    RETURNING = "returning"  # returning to its own system
    LOST = "lost"  # unreachable or in an unknown state; its next order recovers it first
    QUARANTINED = "quarantined"  # may not work


WORKING: Final = frozenset(
    {TestboxPhase.LEASED, TestboxPhase.BOOTING, TestboxPhase.RUNNING, TestboxPhase.RETURNING}
)


# Uses of its time, as spelled in JSON and in words.
TIME_USES: Final[Mapping[str, str]] = {
    "busy": "busy",
    "kernel": "waiting for a kernel",
    "service": "waiting for the service",
    "idle": "idle",
    "out": "out of service",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHeld:
    """A controller holds the testbox of an attempt, for at least `seconds` from now.

    `fence` is the fencing token: greater than that of every earlier holder of the testbox.
    """

    fence: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseRefused:
    """Another controller holds the testbox of an attempt; `why` names it."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxStatus:
    """The last known state of a testbox."""

    testbox: str
    state: TestboxPhase = TestboxPhase.IDLE
    why: str = ""  # reason of the last change
    attempt: int | None = None  # current attempt, or the one at the time it was lost
    failures: int = 0  # consecutive attempts that failed due to it or its controller
    down: int = 0  # consecutive boots that did not come up, for any reason


@dataclass(frozen=True, slots=True)
class Assigned:
    """The testbox was assigned to an attempt."""

    attempt: int


@dataclass(frozen=True, slots=True)
class PhaseReported:
    """The worker reported a phase (one of swingbot_jobs.contract.orders.PHASES)."""

    phase: str
    why: str
    attempt: int | None = None  # the current attempt; None: unchanged


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """An attempt delivered an outcome about the kernel, whether it came up or not."""

    up: bool
    why: str


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt delivered the outcome `infra`, an infrastructure failure."""

    why: str


@dataclass(frozen=True, slots=True)
class ControllerLost:
    """The controller did not report in time."""

    why: str


@dataclass(frozen=True, slots=True)
class AttemptCancelled:
    """The attempt is no longer needed."""

    why: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The testbox must not work any longer."""

    why: str


@dataclass(frozen=True, slots=True)
class Released:
    """The testbox may work again; earlier failures are forgotten."""

    why: str


Event = (
    Assigned
    | PhaseReported
    | AttemptEnded
    | AttemptFailed
    | ControllerLost
    | AttemptCancelled
    | Quarantined
    | Released
)


def transition(testbox: TestboxStatus, event: Event, *, barred: bool = False) -> TestboxStatus:
    """Return the testbox after `event`.

    `barred`: it may not work, so it returns to quarantine (an anchor is booted there anyway).
    """
    home = TestboxPhase.QUARANTINED if barred else TestboxPhase.IDLE
    # An outcome does not recover a testbox that its driver reported as lost.
    back = testbox.state if testbox.state is TestboxPhase.LOST else home
    match event:
        case Assigned(attempt):
            return replace(testbox, state=TestboxPhase.LEASED, why="handed out", attempt=attempt)
        case PhaseReported(phase, why, attempt):
            return _because(
                replace(testbox, attempt=attempt or testbox.attempt), TestboxPhase(phase), why
            )
        case AttemptEnded(up, why):
            failures = testbox.failures + 1 if back is TestboxPhase.LOST else 0
            return _because(
                replace(testbox, failures=failures, down=0 if up else testbox.down + 1), back, why
            )
        case AttemptFailed(why):
            return _because(
                replace(testbox, failures=testbox.failures + 1, down=testbox.down + 1), back, why
            )
        case ControllerLost(why):
            return _because(
                replace(testbox, failures=testbox.failures + 1, down=testbox.down + 1),
                TestboxPhase.LOST,
                why,
            )
        case AttemptCancelled(why):
            return _because(testbox, back, why)
        case Quarantined(why):
            return (
                testbox
                if testbox.state in WORKING
                else _because(testbox, TestboxPhase.QUARANTINED, why)
            )
        case Released(why):
            fresh = replace(testbox, failures=0, down=0)
            return fresh if testbox.state in WORKING else _because(fresh, TestboxPhase.IDLE, why)


def _because(testbox: TestboxStatus, state: TestboxPhase, why: str) -> TestboxStatus:
    plain = printable(why, " ")[: limits.WHY_CHARACTERS]
    return replace(
        testbox,
        state=state,
        why=plain,
        attempt=testbox.attempt if state in WORKING or state is TestboxPhase.LOST else None,
    )
