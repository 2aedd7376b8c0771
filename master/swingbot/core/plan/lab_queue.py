"""Predict when open orders end, by playing the queue of the lab forward. Times are in seconds.

The rules are those of `core/plan/queue.py`: by priority, then by turn (`core/plan/turns.py`); a
testbox runs one boot at a time, and a boot waits for its kernel. What is not known here (failed
builds, requests that are still to come) is not foreseen.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import count
from statistics import median
from typing import Final

from swingbot.core.plan.costs import seconds_left
from swingbot.core.plan.queue import PRIORITY
from swingbot.core.plan.turns import Turn, turns

# Number of latest boots, and of latest builds, that an estimate rests on: few, so that it follows
# a machine that became slower.
LATEST: Final = 9
# Builds are expected to be at most this much slower or faster than forecast. A full build that was
# forecast and turned out incremental says little about the next build.
_PACE: Final = 2.0
# two pairs of culprit and parent (`core/bisect`: confirm_boots)
CONFIRMATION_BOOTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingOrder:
    """An order that is not over."""

    id: int
    build_key: str
    testbox: str | None = None  # None: a build
    priority: int = 0
    seconds: float = math.inf  # usual duration from hand-out to result; infinite: not known
    elapsed: float | None = None  # since it was handed out; None: still queued
    asker: str | None = None
    served: float | None = None  # seconds since the asker was last served


def usual_seconds(latest: Sequence[float]) -> float | None:
    """Return the usual duration: the median of the last few, `latest` first; None without any."""
    return median(latest[:LATEST]) if latest else None


def pace(latest: Sequence[tuple[float, float]]) -> float:
    """Return how much slower than forecast builds are at present.

    The median over the last few builds, `latest` first, as (forecast, actual), and one build as
    forecast.
    """
    ratios = [
        min(_PACE, max(1 / _PACE, actual / foreseen))
        for foreseen, actual in latest[: LATEST // 2]
        if foreseen > 0
    ]
    return median([1.0, *ratios])


def end_times(pending: Iterable[PendingOrder], builders: int = 1) -> dict[int, float]:
    """Return the seconds until each order ends (infinite: not known), with `builders` workers."""
    orders = list(pending)
    builds = [order for order in orders if order.testbox is None]
    ends = _builds(builds, builders)
    built = {order.build_key: ends[order.id] for order in builds}
    by_testbox: dict[str, list[PendingOrder]] = defaultdict(list)
    for order in orders:
        if order.testbox is not None:
            by_testbox[order.testbox].append(order)
    for boots in by_testbox.values():
        ends |= _boots(boots, built)
    return ends


def _in_turn(builds: Sequence[PendingOrder]) -> list[PendingOrder]:
    """Return builds in the order in which they begin: those that are handed out first."""
    running = [one for one in builds if one.elapsed is not None]
    turn = turns(one for one in builds if one.elapsed is None)
    return [
        *sorted(running, key=lambda one: (-(one.elapsed or 0.0), one.id)),
        *sorted((one for one in builds if one.id in turn), key=lambda one: turn[one.id]),
    ]


def _builds(builds: Sequence[PendingOrder], builders: int) -> dict[int, float]:
    """More builds are handed out than there are workers; the first of them run."""
    free = [0.0] * max(1, builders)
    ends = {}
    for place, order in enumerate(_in_turn(builds)):
        runs = order.elapsed is not None and place < len(free)
        begin = heappop(free)
        ends[order.id] = begin + (
            seconds_left(order.seconds, order.elapsed or 0.0) if runs else order.seconds
        )
        heappush(free, ends[order.id])
    return ends


def _boots(boots: Sequence[PendingOrder], built: dict[str, float]) -> dict[int, float]:
    ends = {
        order.id: seconds_left(order.seconds, order.elapsed)
        for order in boots
        if order.elapsed is not None
    }
    now = max(ends.values(), default=0.0)
    coming = [
        (built.get(order.build_key, 0.0), order.id, order)
        for order in boots
        if order.elapsed is None
    ]
    heapify(coming)
    turn = turns(order for _, _, order in coming)
    ready: list[tuple[Turn, PendingOrder]] = []
    while coming or ready:
        if not ready:
            now = max(now, coming[0][0])
        while coming and coming[0][0] <= now:
            _, id, order = heappop(coming)
            heappush(ready, (turn[id], order))
        _, order = heappop(ready)
        now += order.seconds
        ends[order.id] = now
    return ends


@dataclass(frozen=True, kw_only=True)
class QueueForecast:
    """The open orders of the whole lab, and when each ends."""

    pending: Mapping[int, PendingOrder]  # by number
    builders: int = 1

    @cached_property
    def ends(self) -> Mapping[int, float]:
        return end_times(self.pending.values(), self.builders)

    def left(self, orders: Iterable[int]) -> float | None:
        """Return the seconds until the last of these orders ends; those that are over count
        nothing. None if that is not known.
        """
        return _finite(max((self.ends[id] for id in orders if id in self.ends), default=0.0))

    def builds_ahead(self, orders: Collection[int]) -> int:
        """Return how many other builds begin before the first build of these orders; 0 while one of
        the orders runs, or if a worker is free for it.
        """
        queue = _in_turn([one for one in self.pending.values() if one.testbox is None])
        place = next((i for i, one in enumerate(queue) if one.id in orders), 0)
        boots = any(
            one.testbox is not None and one.elapsed is not None
            for id in orders
            if (one := self.pending.get(id)) is not None
        )
        return 0 if boots or place < self.builders else place

    def left_with(
        self,
        kind: str,
        boots: Mapping[tuple[str, str, str], int],
        boot_seconds: Mapping[tuple[str, str], float],
        build_seconds: Mapping[str, float],
    ) -> float | None:
        """Return the seconds until a request of this kind ends whose orders are not placed yet.

        `boots` counts its boots by (build key, testbox, spec), `boot_seconds` is the duration by
        (testbox, spec), `build_seconds` that of its kernels which are not built. The requester
        counts as somebody without another open request. None if that is not known.
        """
        priority = PRIORITY.get(kind, PRIORITY["watch"])
        ids = count(max(self.pending, default=0) + 1)
        ordered = {one.build_key for one in self.pending.values() if one.testbox is None}
        more = [
            PendingOrder(id=next(ids), build_key=key, priority=priority, seconds=build_seconds[key])
            for key in dict.fromkeys(key for key, _, _ in boots)
            if key in build_seconds and key not in ordered
        ]
        more += [
            PendingOrder(
                id=next(ids),
                build_key=key,
                testbox=testbox,
                priority=priority,
                seconds=boot_seconds[testbox, spec],
            )
            for (key, testbox, spec), number in boots.items()
            for _ in range(number)
        ]
        ends = end_times([*self.pending.values(), *more], self.builders)
        return _finite(max((ends[one.id] for one in more), default=0.0))


def _finite(seconds: float) -> float | None:
    return None if math.isinf(seconds) else seconds


def bisection_seconds_left(
    *,
    in_flight: float | None,
    asked: Sequence[tuple[str, bool]],
    bits_left: float,
    confirming: bool,
    boot: float,
    build: float,
) -> float | None:
    """Return the seconds until a bisection ends; None if that is not known.

    `in_flight` is the time until its open orders end, `asked` the phase of each boot that it asked
    for, and whether it was seen. A search boot answers at most one bit and needs at most one build.
    While the culprit is being confirmed nothing is searched.
    """
    if in_flight is None or math.isinf(boot):
        return None
    searching = sum(phase == "search" and not seen for phase, seen in asked)
    confirmations_left = CONFIRMATION_BOOTS - sum(phase == "confirm" for phase, _ in asked)
    steps = 0 if confirming else max(0, math.ceil(bits_left) - searching)
    return in_flight + steps * (build + boot) + max(0, confirmations_left) * boot
