"""What a testbox does now, and how that changes: a state machine without clock or memory of its own.

    idle -> leased -> booting -> running -> returning -> idle      one boot, as the brain hands it out and the worker tells of it
    any of them -> lost                                            its controller fell silent, or it did not come back
    idle, lost -> quarantined -> idle                              it may not work, and a person or its anchor lets it again

Whether a testbox may work (active, drained, quarantined) is a wish beside this: a drained one ends what it does and then is idle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from swingbot_jobs.printable import printable

WHY_LENGTH: Final = 500


class TestboxPhase(StrEnum):
    IDLE = "idle"
    LEASED = "leased"  # handed to an attempt; no controller has touched it yet
    BOOTING = "booting"  # on its way into the kernel under test
    RUNNING = "running"  # in it
    RETURNING = "returning"  # on its way back to its own system
    LOST = "lost"  # out of reach, or nobody knows: its next order brings it home first
    QUARANTINED = "quarantined"  # may not work


WORKING: Final = frozenset(
    {TestboxPhase.LEASED, TestboxPhase.BOOTING, TestboxPhase.RUNNING, TestboxPhase.RETURNING}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxStatus:
    """A testbox as it was found last."""

    testbox: str
    state: TestboxPhase = TestboxPhase.IDLE
    why: str = ""  # of the last change, in words
    attempt: int | None = None  # which it works for, or worked for when it was lost
    failures: int = 0  # attempts in a row that it or its controller failed
    down: int = 0  # boots in a row that did not come up, whoever is to blame


@dataclass(frozen=True, slots=True)
class Assigned:
    """The brain gave it to an attempt."""

    attempt: int


@dataclass(frozen=True, slots=True)
class PhaseReported:
    """The worker said what it does (one of swingbot_jobs.contract.orders.PHASES)."""

    phase: str
    why: str
    attempt: int | None = None  # that has it; None: the one that had it before


@dataclass(frozen=True, slots=True)
class AttemptEnded:
    """An attempt brought an outcome about the kernel: it came up, or it is the kernel that did not."""

    up: bool
    why: str


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt brought the outcome `infra`: the lab's fault."""

    why: str


@dataclass(frozen=True, slots=True)
class ControllerLost:
    """Nothing was heard of its controller for too long."""

    why: str


@dataclass(frozen=True, slots=True)
class AttemptCancelled:
    """Nobody wants the attempt any more."""

    why: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """It may not work any more."""

    why: str


@dataclass(frozen=True, slots=True)
class Released:
    """It may work again, as it is: earlier failures count no more."""

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


def transition(box: TestboxStatus, event: Event, *, barred: bool = False) -> TestboxStatus:
    """The testbox after `event`. `barred`: it may not work, so that home is quarantine (an anchor is booted there all the same)."""
    home = TestboxPhase.QUARANTINED if barred else TestboxPhase.IDLE
    # an outcome does not make found what its driver called lost
    back = box.state if box.state is TestboxPhase.LOST else home
    match event:
        case Assigned(attempt):
            return replace(box, state=TestboxPhase.LEASED, why="handed out", attempt=attempt)
        case PhaseReported(phase, why, attempt):
            return _because(replace(box, attempt=attempt or box.attempt), TestboxPhase(phase), why)
        case AttemptEnded(up, why):
            failures = box.failures + 1 if back is TestboxPhase.LOST else 0
            return _because(
                replace(box, failures=failures, down=0 if up else box.down + 1), back, why
            )
        case AttemptFailed(why):
            return _because(replace(box, failures=box.failures + 1, down=box.down + 1), back, why)
        case ControllerLost(why):
            return _because(
                replace(box, failures=box.failures + 1, down=box.down + 1), TestboxPhase.LOST, why
            )
        case AttemptCancelled(why):
            return _because(box, back, why)
        case Quarantined(why):
            return box if box.state in WORKING else _because(box, TestboxPhase.QUARANTINED, why)
        case Released(why):
            fresh = replace(box, failures=0, down=0)
            return fresh if box.state in WORKING else _because(fresh, TestboxPhase.IDLE, why)


def _because(box: TestboxStatus, state: TestboxPhase, why: str) -> TestboxStatus:
    plain = printable(why, " ")[:WHY_LENGTH]
    return replace(
        box,
        state=state,
        why=plain,
        attempt=box.attempt if state in WORKING or state is TestboxPhase.LOST else None,
    )
