"""People take turns, and everything else keeps its order."""

from __future__ import annotations

from typing import Any

from swingbot.core.plan.lab_queue import PendingOrder, end_times
from swingbot.core.plan.turns import turns


def boot(id: int, asker: str | None = None, **more: Any) -> PendingOrder:
    return PendingOrder(
        **{"id": id, "build_key": "k", "testbox": "vm", "seconds": 10.0, "asker": asker, **more}
    )


def in_turn(*waiting: PendingOrder) -> list[int]:
    found = turns(waiting)
    return sorted(found, key=lambda id: found[id])


def test_without_askers_orders_go_by_priority_then_by_age() -> None:
    assert in_turn(boot(3), boot(1), boot(2, priority=50)) == [2, 1, 3]


def test_askers_get_one_boot_each_in_turn() -> None:
    greedy = [boot(number, "greedy") for number in range(1, 6)]
    assert in_turn(*greedy, boot(6, "other"), boot(7, "other"), boot(8, "third")) == [
        *(1, 6, 8),
        *(2, 7),
        *(3, 4, 5),
    ]


def test_who_was_served_longest_ago_is_next_and_who_was_never_served_before_that() -> None:
    waiting = [boot(1, "a", served=5.0), boot(2, "b", served=60.0), boot(3, "c")]
    assert in_turn(*waiting) == [3, 2, 1]


def test_turns_do_not_override_priorities() -> None:
    assert in_turn(boot(1, "a", served=1.0, priority=50), boot(2, "b", priority=45)) == [1, 2]


def test_each_testbox_has_turns_of_its_own() -> None:
    found = turns([boot(1, "a", testbox="one"), boot(2, "a", testbox="two")])
    assert {turn.round for turn in found.values()} == {0}


def test_builds_are_shared_in_turn() -> None:
    builds = [boot(number, "greedy", testbox=None) for number in (1, 2, 3)]
    assert in_turn(*builds, boot(4, "other", testbox=None)) == [1, 4, 2, 3]


def test_estimates_follow_the_turns() -> None:
    greedy = [boot(number, "greedy") for number in range(1, 6)]
    kernel = PendingOrder(id=7, build_key="new", seconds=15.0, asker="other")
    ends = end_times([*greedy, boot(6, "other"), kernel, boot(8, "other", build_key="new")])
    assert ends[6] == 20.0
    assert ends[8] == 40.0, "in the second round, when its kernel is built"
    assert ends[5] == 70.0
    builds = [boot(number, "greedy", testbox=None) for number in (1, 2)]
    assert end_times([*builds, boot(3, "other", testbox=None)]) == {1: 10.0, 3: 20.0, 2: 30.0}
