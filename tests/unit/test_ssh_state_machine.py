"""The state machine of a bare-metal testbox during one order, over all sequences of events."""

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
    """Progress after these events, one per second, and the action after each."""
    progress, actions = leased(0.0), []
    for number, event in enumerate(events, start=1):
        progress, action = step(progress, event, float(number))
        actions.append(action)
    return progress, actions


def test_an_order_without_trouble_goes_out_and_home() -> None:
    progress, actions = follow(
        Event.FOUND_IDLE, Event.ENTERED, Event.UP, Event.ENDED, Event.FOUND_IDLE
    )
    assert progress.state is State.IDLE
    assert actions == [Action.ENTER, Action.WATCH, Action.WATCH, Action.LOOK, Action.DONE]


def test_a_kernel_that_breaks_before_the_job_goes_home_by_itself() -> None:
    progress, actions = follow(Event.FOUND_IDLE, Event.ENTERED, Event.ENDED, Event.FOUND_IDLE)
    assert progress.state is State.IDLE and Action.CYCLE not in actions


def test_a_hang_is_ended_by_the_power_switch() -> None:
    for event in (Event.QUIET, Event.DEADLINE):
        progress, actions = follow(
            Event.FOUND_IDLE, Event.ENTERED, Event.UP, event, Event.CYCLED, Event.FOUND_IDLE
        )
        assert actions[3:] == [Action.CYCLE, Action.LOOK, Action.DONE]
        assert progress.state is State.IDLE


def test_a_testbox_in_a_strange_kernel_is_rebooted_and_then_gets_its_order() -> None:
    progress, actions = follow(Event.FOUND_STRANGE, Event.FOUND_IDLE)
    assert actions == [Action.REBOOT, Action.ENTER]
    assert progress.state is State.LEASED and not progress.rebooted


def test_a_strange_kernel_that_does_not_reboot_loses_its_power() -> None:
    _, actions = follow(
        Event.FOUND_STRANGE, Event.FOUND_STRANGE, Event.DEADLINE, Event.CYCLED, Event.FOUND_IDLE
    )
    assert actions == [Action.REBOOT, Action.LOOK, Action.CYCLE, Action.LOOK, Action.ENTER]


def test_a_silent_testbox_is_switched_off_and_on_twice_and_then_lost() -> None:
    events = [event for _ in range(CYCLES) for event in (Event.DEADLINE, Event.CYCLED)]
    progress, actions = follow(*events, Event.DEADLINE)
    assert actions.count(Action.CYCLE) == CYCLES
    assert (progress.state, actions[-1]) == (State.LOST, Action.GIVE_UP)


def test_a_switch_that_fails_loses_the_testbox_at_once() -> None:
    progress, actions = follow(Event.DEADLINE, Event.NO_POWER)
    assert (progress.state, actions[-1]) == (State.LOST, Action.GIVE_UP)


def test_a_lost_testbox_that_somebody_brought_back_is_idle() -> None:
    progress, actions = follow(Event.DEADLINE, Event.NO_POWER, Event.FOUND_IDLE)
    assert (progress.state, actions[-1]) == (State.IDLE, Action.DONE)


def test_going_home_after_a_panic_has_the_seconds_that_panic_waits() -> None:
    progress, _ = follow(Event.FOUND_IDLE, Event.ENTERED, Event.ENDED)
    assert deadline(progress, TIMES) == 3 + 200 + 10


def test_the_job_is_limited_from_entering_not_from_coming_up() -> None:
    progress, _ = follow(Event.FOUND_IDLE, Event.ENTERED, Event.UP)
    assert deadline(progress, TIMES) == 2 + 300


def sequences(length: int) -> list[tuple[Event, ...]]:
    return list(itertools.product(Event, repeat=length))


def test_every_state_but_the_ends_has_a_deadline_after_any_events() -> None:
    for events in sequences(4):
        progress, _ = follow(*events)
        assert (deadline(progress, TIMES) == float("inf")) == (progress.state in ENDS), events


def test_the_kernel_under_test_is_entered_from_the_idle_system_alone() -> None:
    for events in sequences(4):
        _, actions = follow(*events)
        assert all(
            event is Event.FOUND_IDLE
            for event, action in zip(events, actions, strict=True)
            if action is Action.ENTER
        ), events


def test_an_order_enters_at_most_once() -> None:
    """If the testbox is back in its idle system after it left for an order, the order is over."""
    for events in sequences(4):
        for length in range(len(events)):
            progress, _ = follow(*events[:length])
            if progress.entered is not None:
                assert all(step(progress, event, 9.0)[1] is not Action.ENTER for event in Event), (
                    events[:length]
                )


def test_whatever_happens_deadlines_alone_bring_a_testbox_to_an_end() -> None:
    """After any events, a testbox of which nothing is heard any more is lost after a bounded number
    of deadlines and power cycles."""
    for events in sequences(4):
        progress, _ = follow(*events)
        actions, now = [], 10.0
        while progress.state not in ENDS:
            progress, action = step(progress, Event.DEADLINE, now)
            actions.append(action)
            if action is Action.CYCLE:
                progress, _ = step(progress, Event.CYCLED, now)
            assert len(actions) <= CYCLES + 1, events
        assert progress.state is State.LOST or progress.state is State.IDLE


def test_an_end_is_left_only_by_a_testbox_that_is_back() -> None:
    for events in sequences(3):
        progress, _ = follow(*events)
        if progress.state in ENDS:
            for event in Event:
                after, action = step(progress, event, 9.0)
                assert after.state is (State.IDLE if event is Event.FOUND_IDLE else progress.state)
                assert action in (Action.DONE, Action.GIVE_UP)
