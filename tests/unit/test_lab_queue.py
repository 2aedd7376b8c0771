"""When open orders end, and how good that was over recorded runs of the demo."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from swingbot.core.plan.lab_queue import (
    LATEST,
    PendingOrder,
    QueueForecast,
    bisection_seconds_left,
    end_times,
    pace,
    usual_seconds,
)
from tests.demo.estimates import FACTOR, SHARE, Estimate

# Two runs of the demo as the database had them: when each order was placed, handed out and over,
# the forecast of each build, and the seconds of each that was not taken from the cache.
RECORDED = json.loads((Path(__file__).parent / "timelines" / "demo.json").read_text())
TESTBOX = "vm-icount"


def build(id: int, kernel: str, seconds: float, **more: Any) -> PendingOrder:
    return PendingOrder(id=id, build_key=kernel, seconds=seconds, **more)


def boot(id: int, kernel: str, seconds: float = 20.0, **more: Any) -> PendingOrder:
    return PendingOrder(id=id, build_key=kernel, testbox=TESTBOX, seconds=seconds, **more)


def test_boots_wait_for_their_kernel_and_for_the_boots_before_them() -> None:
    ends = end_times([build(1, "a", 100.0), boot(2, "a"), boot(3, "a"), boot(4, "built before")])
    assert ends == {1: 100.0, 4: 20.0, 2: 120.0, 3: 140.0}


def test_what_others_queued_before_counts_on_the_same_worker_and_testbox() -> None:
    others = [build(1, "a", 300.0, elapsed=200.0), *(boot(n, "a") for n in (2, 3, 4))]
    ends = end_times([*others, build(5, "b", 50.0), boot(6, "b")])
    assert (ends[1], ends[5]) == (100.0, 150.0)
    assert ends[6] == 100.0 + 3 * 20.0 + 20.0
    alone = end_times([build(5, "b", 50.0), boot(6, "b")])
    assert alone[6] == 70.0


def test_a_higher_priority_goes_first_but_stops_nothing_that_runs() -> None:
    ends = end_times(
        [
            boot(1, "k", elapsed=5.0, priority=10),
            boot(2, "k", priority=30),
            boot(3, "k", priority=50),
            build(4, "a", 60.0, priority=5),
            build(5, "b", 60.0, priority=50),
        ]
    )
    assert ends == {1: 15.0, 3: 35.0, 2: 55.0, 5: 60.0, 4: 120.0}


def test_the_phase_that_runs_has_its_usual_time_less_what_has_passed() -> None:
    (left,) = end_times([boot(1, "k", elapsed=15.0)]).values()
    assert left == 5.0
    (late,) = end_times([boot(1, "k", elapsed=100.0)]).values()
    assert late == 10.0  # overdue: a tenth of what it has taken


def test_a_second_worker_halves_the_queue_and_the_first_builds_handed_out_run() -> None:
    queue = [build(n, str(n), 100.0, elapsed=float(10 - n)) for n in range(1, 5)]
    assert end_times(queue)[4] == 91.0 + 300.0
    assert end_times(queue, builders=2) == {1: 91.0, 2: 92.0, 3: 191.0, 4: 192.0}


def test_a_request_waits_for_the_builds_before_its_first_one() -> None:
    queue = [
        *(build(n, str(n), 100.0, elapsed=9.0 - n) for n in (1, 2)),
        *(build(n, str(n), 100.0) for n in (3, 4)),
        boot(5, "k", elapsed=1.0),
        boot(6, "3"),
    ]
    one, two = (
        QueueForecast(builders=n, pending={order.id: order for order in queue}) for n in (1, 2)
    )
    assert [one.builds_ahead({n}) for n in (1, 2, 3, 4, 5, 6, 7)] == [0, 1, 2, 3, 0, 0, 0]
    assert one.builds_ahead({4, 3, 6}) == 2
    assert one.builds_ahead({4, 5}) == 0, "a boot of its own runs"
    assert [two.builds_ahead({n}) for n in (2, 3)] == [0, 2]


def test_an_unknown_duration_makes_what_depends_on_it_unknown_and_nothing_else() -> None:
    ends = end_times([build(1, "a", math.inf), boot(2, "a"), boot(3, "k")])
    assert (ends[1], ends[2], ends[3]) == (math.inf, math.inf, 20.0)


def test_one_odd_boot_decides_nothing_and_a_slower_machine_is_followed() -> None:
    assert usual_seconds([]) is None
    assert usual_seconds([20.0, 21.0, 900.0, 19.0, 20.0]) == 20.0
    assert usual_seconds([70.0] * LATEST + [20.0] * 100) == 70.0


def test_the_pace_of_builds_follows_the_latest_and_is_bounded() -> None:
    assert pace([]) == 1.0
    assert pace([(300.0, 17.0)]) == 0.75  # the only full build was not one
    assert pace([(20.0, 36.0), (20.0, 34.0), (20.0, 30.0), (20.0, 400.0)]) == pytest.approx(1.7)
    assert pace([(0.0, 5.0)]) == 1.0


def test_a_bisection_that_confirms_searches_no_more() -> None:
    facts: dict[str, Any] = {"boot": 12.0, "build": 20.0, "in_flight": 30.0}
    search = bisection_seconds_left(
        **facts, asked=[("search", False), ("search", True)], bits_left=2.3, confirming=False
    )
    assert search == 30.0 + 2 * 32.0 + 4 * 12.0
    confirm = bisection_seconds_left(
        **facts, asked=[("confirm", False)] * 4, bits_left=0.1, confirming=True
    )
    assert confirm == 30.0
    assert (
        bisection_seconds_left(
            **(facts | {"in_flight": None}), asked=[], bits_left=1.0, confirming=False
        )
        is None
    )
    assert (
        bisection_seconds_left(
            **(facts | {"boot": math.inf}), asked=[], bits_left=1.0, confirming=False
        )
        is None
    )


class Replay:
    """A recorded run, seen at any second with nothing but what was known by then."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self.orders = {order["id"]: order for order in recorded["orders"]}
        self.requests = recorded["requests"]

    def left(self, request: dict[str, Any], now: float) -> float:
        ends = end_times(
            self._pending(order, now)
            for order in self.orders.values()
            if order["placed"] <= now < (order["ended"] or math.inf)
        )
        return max((ends[id] for id in request["orders"] if id in ends), default=0.0)

    def _pending(self, order: dict[str, Any], now: float) -> PendingOrder:
        began = order["began"]
        elapsed = None if began is None or began > now else now - began
        if order["testbox"] is None and elapsed is not None:
            built = [one["ended"] for one in self._over(now) if one["testbox"] is None]
            elapsed = min([elapsed, *(now - end for end in built if end > began)])
        return PendingOrder(
            id=order["id"],
            build_key=order["kernel"],
            testbox=order["testbox"],
            priority=order["priority"],
            seconds=self._boot(order, now) if order["testbox"] else self._build(order, now),
            elapsed=elapsed,
        )

    def _over(self, now: float) -> list[dict[str, Any]]:
        """What has ended, the latest first."""
        over = [one for one in self.orders.values() if (one["ended"] or math.inf) <= now]
        return sorted(over, key=lambda one: -one["ended"])

    def _boot(self, order: dict[str, Any], now: float) -> float:
        over = [one for one in self._over(now) if one["testbox"] == order["testbox"]]
        same = [one for one in over if one["jobs"] == order["jobs"]]
        seconds = usual_seconds([one["ended"] - one["began"] for one in same or over])
        return math.inf if seconds is None else seconds

    def _build(self, order: dict[str, Any], now: float) -> float:
        over = [one for one in self._over(now) if one["built"] is not None]
        return float(order["forecast"] * pace([(one["forecast"], one["built"]) for one in over]))

    def moments(self, request: dict[str, Any]) -> list[float]:
        """When the request was placed, and whenever one of its builds or boots was over."""
        steps = {self.orders[id]["ended"] for id in request["orders"]}
        return sorted(
            at + 1.0
            for at in {request["placed"], *steps}
            if request["placed"] <= at < request["ended"] - 1.0
        )


def factors(recorded: dict[str, Any]) -> list[float]:
    replay = Replay(recorded)
    start = datetime(2026, 3, 2, 9, tzinfo=UTC)
    return [
        Estimate(
            id=request["id"], at=start + timedelta(seconds=now), seconds=seconds, done=""
        ).factor(start + timedelta(seconds=request["ended"]))
        for request in replay.requests
        for now in replay.moments(request)
        if math.isfinite(seconds := replay.left(request, now))
    ]


@pytest.mark.parametrize("recorded", RECORDED, ids=[one["about"] for one in RECORDED])
def test_four_of_five_estimates_over_a_recorded_demo_are_within_the_factor(
    recorded: dict[str, Any],
) -> None:
    judged = factors(recorded)
    assert len(judged) >= 10
    assert sum(1 / FACTOR <= one <= FACTOR for one in judged) >= SHARE * len(judged), judged
