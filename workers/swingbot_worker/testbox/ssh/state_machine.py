"""The way of a box through one order: from its idle system into the kernel under test and back.
Pure.

    leased -> booting -> running -> returning -> idle
       \\          \\_______________/      |
        `-> returning (first brought home) `-> lost

`step` takes where the box is and what happened, and says where it is then and what to do. Whoever
drives does that and comes back with what happened next. Each state but the two ends has a deadline;
letting it pass is an event too, so no state lasts for ever. Times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class State(StrEnum):
    LEASED = "leased"  # leased for this order; its current system is being determined
    BOOTING = "booting"  # on its way into the kernel under test
    RUNNING = "running"  # the job runs in the kernel under test
    RETURNING = "returning"  # on its way into its idle system
    IDLE = "idle"  # there, with the order done with or not
    LOST = "lost"  # out of reach; a person has to look


class Event(StrEnum):
    FOUND_IDLE = "found_idle"  # SSH answers in the idle system
    FOUND_STRANGE = "found_strange"  # SSH answers, in a kernel that is not the idle system's
    ENTERED = "entered"  # the command that leaves the idle system was given
    UP = "up"  # the kernel under test says that the job begins
    # the kernel under test is through with the job, or has broken: the verdict is known
    ENDED = "ended"
    QUIET = "quiet"  # no sign of life for too long
    DEADLINE = "deadline"  # the state has lasted too long
    CYCLED = "cycled"  # the power was switched off and on, so it says
    NO_POWER = "no_power"  # there is no power switch, or it fails


class Action(StrEnum):
    LOOK = "look"  # see who answers, again and again
    ENTER = "enter"  # send everything and leave the idle system
    WATCH = "watch"  # listen to the kernel under test
    REBOOT = "reboot"  # ask the system that answers to reboot
    CYCLE = "cycle"  # switch the power off and on
    DONE = "done"  # it is home
    GIVE_UP = "give_up"  # it is lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long a state may last: `running` counts from entering, as the order's limit does; `home`
    from any reset to the idle system.
    """

    booting: float
    running: float
    home: float
    panic: float  # a panicked kernel waits this long before it resets


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxProgress:
    """Where a box is. `since` is when the state, or the last attempt at it, began."""

    state: State
    since: float
    entered: float | None = None  # when it left its idle system for this order
    rebooted: bool = False  # it was asked to go home already
    cycles: int = 0  # power cycles on this way home


# A box that two power cycles do not bring back will not be brought back by a third.
CYCLES = 2
ENDS = (State.IDLE, State.LOST)


def leased(now: float) -> TestboxProgress:
    """The beginning: an order has the box."""
    return TestboxProgress(state=State.LEASED, since=now)


def deadline(way: TestboxProgress, times: Times) -> float:
    """When DEADLINE falls due; infinity at an end."""
    if way.state in ENDS:
        return float("inf")
    entered = way.since if way.entered is None else way.entered
    if way.state is State.BOOTING:
        return min(entered + times.running, way.since + times.booting)
    if way.state is State.RUNNING:
        return entered + times.running
    return (
        way.since
        + times.home
        + (times.panic if way.state is State.RETURNING and not way.cycles else 0.0)
    )


def step(way: TestboxProgress, event: Event, now: float) -> tuple[TestboxProgress, Action]:
    """Where the box is after `event`, and what to do.

    An event that means nothing in a state changes nothing.
    """
    if way.state in (State.LEASED, State.RETURNING):
        return _homeward(way, event, now)
    if way.state in (State.BOOTING, State.RUNNING):
        return _outward(way, event, now)
    if way.state is State.LOST and event is Event.FOUND_IDLE:  # somebody has looked after it
        return replace(way, state=State.IDLE, since=now), Action.DONE
    return way, Action.DONE if way.state is State.IDLE else Action.GIVE_UP


def _homeward(way: TestboxProgress, event: Event, now: float) -> tuple[TestboxProgress, Action]:
    if event is Event.FOUND_IDLE:
        if way.entered is not None:
            return replace(way, state=State.IDLE, since=now), Action.DONE
        return replace(way, state=State.LEASED, since=now, rebooted=False, cycles=0), Action.ENTER
    if event is Event.ENTERED and way.state is State.LEASED:
        return TestboxProgress(state=State.BOOTING, since=now, entered=now), Action.WATCH
    if event is Event.FOUND_STRANGE and not way.rebooted:
        return replace(way, state=State.RETURNING, since=now, rebooted=True), Action.REBOOT
    if event is Event.CYCLED:
        return replace(way, state=State.RETURNING, since=now), Action.LOOK
    if event is Event.NO_POWER:
        return replace(way, state=State.LOST, since=now), Action.GIVE_UP
    if event is Event.DEADLINE:
        if way.cycles >= CYCLES:
            return replace(way, state=State.LOST, since=now), Action.GIVE_UP
        return replace(way, state=State.RETURNING, since=now, cycles=way.cycles + 1), Action.CYCLE
    return way, Action.LOOK


def _outward(way: TestboxProgress, event: Event, now: float) -> tuple[TestboxProgress, Action]:
    if event is Event.UP and way.state is State.BOOTING:
        return replace(way, state=State.RUNNING, since=now), Action.WATCH
    if event is Event.FOUND_IDLE:
        return replace(way, state=State.IDLE, since=now), Action.DONE
    if event is Event.ENDED:  # it reboots by itself, or panic= does it
        return replace(way, state=State.RETURNING, since=now), Action.LOOK
    if event is Event.FOUND_STRANGE:
        return replace(way, state=State.RETURNING, since=now, rebooted=True), Action.REBOOT
    if event in (Event.QUIET, Event.DEADLINE):
        return replace(way, state=State.RETURNING, since=now, cycles=1), Action.CYCLE
    return way, Action.WATCH
