"""State machine of a testbox during one order, from its idle system and back to it. Pure.

    leased -> booting -> running -> returning -> idle
       \\          \\_______________/      |
        `-> returning (to idle first)      `-> lost

`step` maps a state and an event to the next state and an action. The driver performs the action and
passes the resulting event to `step`. Each state except the two final ones has a deadline, and an
expired deadline is an event too, so no state lasts forever. Times are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class State(StrEnum):
    LEASED = "leased"  # leased for this order; its current system is being determined
    BOOTING = "booting"  # booting the kernel under test
    RUNNING = "running"  # the job runs in the kernel under test
    RETURNING = "returning"  # rebooting into its idle system
    IDLE = "idle"  # in its idle system again, whether the order succeeded or not
    LOST = "lost"  # unreachable; needs a person


class Event(StrEnum):
    FOUND_IDLE = "found_idle"  # SSH answers in the idle system
    FOUND_STRANGE = "found_strange"  # SSH answers, but from another kernel
    ENTERED = "entered"  # the command that leaves the idle system was sent
    UP = "up"  # the kernel under test reports that the job begins
    ENDED = "ended"  # the job has completed or the kernel has failed: the verdict is known
    QUIET = "quiet"  # no sign of life for too long
    DEADLINE = "deadline"  # the deadline of the state has expired
    CYCLED = "cycled"  # the power switch reports a completed power cycle
    NO_POWER = "no_power"  # the testbox has no power switch, or the switch failed


class Action(StrEnum):
    LOOK = "look"  # poll over SSH until a system answers
    ENTER = "enter"  # copy the files and leave the idle system
    WATCH = "watch"  # watch the kernel under test
    REBOOT = "reboot"  # ask the running system to reboot
    CYCLE = "cycle"  # switch the power off and on
    DONE = "done"  # the testbox is in its idle system
    GIVE_UP = "give_up"  # the testbox is lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Maximum duration of each state, in seconds.

    `running` counts from the moment the testbox leaves its idle system, as the limit of the order
    does. `home` is the time from any reset to the idle system.
    """

    booting: float
    running: float
    home: float
    panic: float  # a panicked kernel waits this long before it resets


@dataclass(frozen=True, slots=True, kw_only=True)
class TestboxProgress:
    """Progress of a testbox. `since` is the start of the state, or of the last attempt."""

    state: State
    since: float
    entered: float | None = None  # time when it left its idle system for this order
    rebooted: bool = False  # it has already been asked to reboot into its idle system
    cycles: int = 0  # power cycles during this return


# Maximum number of power cycles per return. A third one would not help either.
CYCLES = 2
ENDS = (State.IDLE, State.LOST)


def leased(now: float) -> TestboxProgress:
    """Return the initial state: the testbox is leased for an order."""
    return TestboxProgress(state=State.LEASED, since=now)


def deadline(progress: TestboxProgress, times: Times) -> float:
    """Return the time at which DEADLINE occurs; infinity in a final state."""
    if progress.state in ENDS:
        return float("inf")
    entered = progress.since if progress.entered is None else progress.entered
    if progress.state is State.BOOTING:
        return min(entered + times.running, progress.since + times.booting)
    if progress.state is State.RUNNING:
        return entered + times.running
    return (
        progress.since
        + times.home
        + (times.panic if progress.state is State.RETURNING and not progress.cycles else 0.0)
    )


def step(progress: TestboxProgress, event: Event, now: float) -> tuple[TestboxProgress, Action]:
    """Return the progress after `event`, and the next action.

    An event that is irrelevant in the current state changes nothing.
    """
    if progress.state in (State.LEASED, State.RETURNING):
        return _homeward(progress, event, now)
    if progress.state in (State.BOOTING, State.RUNNING):
        return _outward(progress, event, now)
    if progress.state is State.LOST and event is Event.FOUND_IDLE:  # a person has repaired it
        return replace(progress, state=State.IDLE, since=now), Action.DONE
    return progress, Action.DONE if progress.state is State.IDLE else Action.GIVE_UP


def _homeward(
    progress: TestboxProgress, event: Event, now: float
) -> tuple[TestboxProgress, Action]:
    if event is Event.FOUND_IDLE:
        if progress.entered is not None:
            return replace(progress, state=State.IDLE, since=now), Action.DONE
        return replace(
            progress, state=State.LEASED, since=now, rebooted=False, cycles=0
        ), Action.ENTER
    if event is Event.ENTERED and progress.state is State.LEASED:
        return TestboxProgress(state=State.BOOTING, since=now, entered=now), Action.WATCH
    if event is Event.FOUND_STRANGE and not progress.rebooted:
        return replace(progress, state=State.RETURNING, since=now, rebooted=True), Action.REBOOT
    if event is Event.CYCLED:
        return replace(progress, state=State.RETURNING, since=now), Action.LOOK
    if event is Event.NO_POWER:
        return replace(progress, state=State.LOST, since=now), Action.GIVE_UP
    if event is Event.DEADLINE:
        if progress.cycles >= CYCLES:
            return replace(progress, state=State.LOST, since=now), Action.GIVE_UP
        return replace(
            progress, state=State.RETURNING, since=now, cycles=progress.cycles + 1
        ), Action.CYCLE
    return progress, Action.LOOK


def _outward(progress: TestboxProgress, event: Event, now: float) -> tuple[TestboxProgress, Action]:
    if event is Event.UP and progress.state is State.BOOTING:
        return replace(progress, state=State.RUNNING, since=now), Action.WATCH
    if event is Event.FOUND_IDLE:
        return replace(progress, state=State.IDLE, since=now), Action.DONE
    if event is Event.ENDED:  # it reboots by itself, or because of panic=
        return replace(progress, state=State.RETURNING, since=now), Action.LOOK
    if event is Event.FOUND_STRANGE:
        return replace(progress, state=State.RETURNING, since=now, rebooted=True), Action.REBOOT
    if event in (Event.QUIET, Event.DEADLINE):
        return replace(progress, state=State.RETURNING, since=now, cycles=1), Action.CYCLE
    return progress, Action.WATCH
