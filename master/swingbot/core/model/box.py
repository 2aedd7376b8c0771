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


class BoxState(StrEnum):
    IDLE = "idle"
    LEASED = "leased"  # handed to an attempt; no controller has touched it yet
    BOOTING = "booting"  # on its way into the kernel under test
    RUNNING = "running"  # in it
    RETURNING = "returning"  # on its way back to its own system
    LOST = "lost"  # out of reach, or nobody knows: its next order brings it home first
    QUARANTINED = "quarantined"  # may not work


WORKING: Final = frozenset(
    {BoxState.LEASED, BoxState.BOOTING, BoxState.RUNNING, BoxState.RETURNING}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A testbox as it was found last."""

    testbox: str
    state: BoxState = BoxState.IDLE
    why: str = ""  # of the last change, in words
    attempt: int | None = None  # which it works for, or worked for when it was lost
    failures: int = 0  # attempts in a row that it or its controller failed
    down: int = 0  # boots in a row that did not come up, whoever is to blame


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The brain gave it to an attempt."""

    attempt: int


@dataclass(frozen=True, slots=True)
class Told:
    """The worker said what it does (one of swingbot_jobs.contract.orders.PHASES)."""

    phase: str
    why: str
    attempt: int | None = None  # that has it; None: the one that had it before


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt brought an outcome about the kernel: it came up, or it is the kernel that did not."""

    up: bool
    why: str


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt brought the outcome `infra`: the lab's fault."""

    why: str


@dataclass(frozen=True, slots=True)
class Silent:
    """Nothing was heard of its controller for too long."""

    why: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """Nobody wants the attempt any more."""

    why: str


@dataclass(frozen=True, slots=True)
class Barred:
    """It may not work any more."""

    why: str


@dataclass(frozen=True, slots=True)
class Freed:
    """It may work again, as it is: earlier failures count no more."""

    why: str


Event = HandedOut | Told | Ended | Failed | Silent | Withdrawn | Barred | Freed


def after(box: Box, event: Event, *, barred: bool = False) -> Box:
    """The testbox after `event`. `barred`: it may not work, so that home is quarantine (an anchor is booted there all the same)."""
    home = BoxState.QUARANTINED if barred else BoxState.IDLE
    # an outcome does not make found what its driver called lost
    back = box.state if box.state is BoxState.LOST else home
    match event:
        case HandedOut(attempt):
            return replace(box, state=BoxState.LEASED, why="handed out", attempt=attempt)
        case Told(phase, why, attempt):
            return _because(replace(box, attempt=attempt or box.attempt), BoxState(phase), why)
        case Ended(up, why):
            failures = box.failures + 1 if back is BoxState.LOST else 0
            return _because(
                replace(box, failures=failures, down=0 if up else box.down + 1), back, why
            )
        case Failed(why):
            return _because(replace(box, failures=box.failures + 1, down=box.down + 1), back, why)
        case Silent(why):
            return _because(
                replace(box, failures=box.failures + 1, down=box.down + 1), BoxState.LOST, why
            )
        case Withdrawn(why):
            return _because(box, back, why)
        case Barred(why):
            return box if box.state in WORKING else _because(box, BoxState.QUARANTINED, why)
        case Freed(why):
            fresh = replace(box, failures=0, down=0)
            return fresh if box.state in WORKING else _because(fresh, BoxState.IDLE, why)


def _because(box: Box, state: BoxState, why: str) -> Box:
    plain = printable(why, " ")[:WHY_LENGTH]
    return replace(
        box,
        state=state,
        why=plain,
        attempt=box.attempt if state in WORKING or state is BoxState.LOST else None,
    )
