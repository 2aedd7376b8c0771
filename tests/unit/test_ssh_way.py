"""The way of a box of iron through one order, over all sequences of events."""

from __future__ import annotations

import itertools

from swingbot_worker.testbox.ssh.state_machine import (
    CYCLES,
    ENDS,
    Action,
    Event,
    State,
    TestboxProgress,
    Times,
    deadline,
    leased,
    step,
)

TIMES = Times(booting=100, running=300, home=200, panic=10)


def follow(*events: Event) -> tuple[TestboxProgress, list[Action]]:
    """The way after these events, one a second, and what was to be done after each."""
    way, acts = leased(0.0), []
    for number, event in enumerate(events, start=1):
        way, act = step(way, event, float(number))
        acts.append(act)
    return way, acts


def test_an_order_without_trouble_goes_out_and_home() -> None:
    way, acts = follow(Event.FOUND_IDLE, Event.ENTERED, Event.UP, Event.ENDED, Event.FOUND_IDLE)
    assert way.state is State.IDLE
    assert acts == [Action.ENTER, Action.WATCH, Action.WATCH, Action.LOOK, Action.DONE]


def test_a_kernel_that_breaks_before_the_job_goes_home_by_itself() -> None:
    way, acts = follow(Event.FOUND_IDLE, Event.ENTERED, Event.ENDED, Event.FOUND_IDLE)
    assert way.state is State.IDLE and Action.CYCLE not in acts


def test_a_hang_is_ended_by_the_power_switch() -> None:
    for event in (Event.QUIET, Event.DEADLINE):
        way, acts = follow(
            Event.FOUND_IDLE, Event.ENTERED, Event.UP, event, Event.CYCLED, Event.FOUND_IDLE
        )
        assert acts[3:] == [Action.CYCLE, Action.LOOK, Action.DONE]
        assert way.state is State.IDLE


def test_a_box_in_a_strange_kernel_is_rebooted_and_then_gets_its_order() -> None:
    way, acts = follow(Event.FOUND_STRANGE, Event.FOUND_IDLE)
    assert acts == [Action.REBOOT, Action.ENTER]
    assert way.state is State.LEASED and not way.rebooted


def test_a_strange_kernel_that_does_not_reboot_loses_its_power() -> None:
    _, acts = follow(
        Event.FOUND_STRANGE, Event.FOUND_STRANGE, Event.DEADLINE, Event.CYCLED, Event.FOUND_IDLE
    )
    assert acts == [Action.REBOOT, Action.LOOK, Action.CYCLE, Action.LOOK, Action.ENTER]


def test_a_silent_box_is_switched_off_and_on_twice_and_then_lost() -> None:
    events = [event for _ in range(CYCLES) for event in (Event.DEADLINE, Event.CYCLED)]
    way, acts = follow(*events, Event.DEADLINE)
    assert acts.count(Action.CYCLE) == CYCLES
    assert (way.state, acts[-1]) == (State.LOST, Action.GIVE_UP)


def test_a_switch_that_fails_loses_the_box_at_once() -> None:
    way, acts = follow(Event.DEADLINE, Event.NO_POWER)
    assert (way.state, acts[-1]) == (State.LOST, Action.GIVE_UP)


def test_a_lost_box_that_somebody_brought_back_is_idle() -> None:
    way, acts = follow(Event.DEADLINE, Event.NO_POWER, Event.FOUND_IDLE)
    assert (way.state, acts[-1]) == (State.IDLE, Action.DONE)


def test_going_home_after_a_panic_has_the_seconds_that_panic_waits() -> None:
    way, _ = follow(Event.FOUND_IDLE, Event.ENTERED, Event.ENDED)
    assert deadline(way, TIMES) == 3 + 200 + 10


def test_the_job_is_limited_from_entering_not_from_coming_up() -> None:
    way, _ = follow(Event.FOUND_IDLE, Event.ENTERED, Event.UP)
    assert deadline(way, TIMES) == 2 + 300


def sequences(length: int) -> list[tuple[Event, ...]]:
    return list(itertools.product(Event, repeat=length))


def test_every_state_but_the_ends_has_a_deadline_after_any_events() -> None:
    for events in sequences(4):
        way, _ = follow(*events)
        assert (deadline(way, TIMES) == float("inf")) == (way.state in ENDS), events


def test_the_kernel_under_test_is_entered_from_the_idle_system_alone() -> None:
    for events in sequences(4):
        _, acts = follow(*events)
        assert all(
            event is Event.FOUND_IDLE
            for event, act in zip(events, acts, strict=True)
            if act is Action.ENTER
        ), events


def test_an_order_enters_at_most_once() -> None:
    """Once the box has left its idle system for an order, being found there again means that the
    order is over."""
    for events in sequences(4):
        for length in range(len(events)):
            way, _ = follow(*events[:length])
            if way.entered is not None:
                assert all(step(way, event, 9.0)[1] is not Action.ENTER for event in Event), events[
                    :length
                ]


def test_whatever_happens_deadlines_alone_bring_a_box_to_an_end() -> None:
    """After any events, a box of which nothing is heard any more is lost after a bounded number
    of deadlines and power cycles."""
    for events in sequences(4):
        way, _ = follow(*events)
        acts, now = [], 10.0
        while way.state not in ENDS:
            way, act = step(way, Event.DEADLINE, now)
            acts.append(act)
            if act is Action.CYCLE:
                way, _ = step(way, Event.CYCLED, now)
            assert len(acts) <= CYCLES + 1, events
        assert way.state is State.LOST or way.state is State.IDLE


def test_an_end_is_left_only_by_a_box_that_is_back() -> None:
    for events in sequences(3):
        way, _ = follow(*events)
        if way.state in ENDS:
            for event in Event:
                after, act = step(way, event, 9.0)
                assert after.state is (State.IDLE if event is Event.FOUND_IDLE else way.state)
                assert act in (Action.DONE, Action.GIVE_UP)
