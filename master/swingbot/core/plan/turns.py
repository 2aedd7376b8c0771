"""Who is next: within a priority, people take turns on each testbox and at the build workers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple, Protocol


class Waiting(Protocol):
    """An order that waits to be handed out."""

    @property
    def id(self) -> int: ...

    @property
    def testbox(self) -> str | None:
        """None: a build."""

    @property
    def priority(self) -> int: ...

    @property
    def asker(self) -> str | None:
        """Who requested it; None for the service's own work."""

    @property
    def served(self) -> float | None:
        """Seconds since the asker was last handed an order on this testbox, or a build, for a
        request that is still open; None: not yet.
        """


class Turn(NamedTuple):
    """Sorts first what is next."""

    priority: int
    round: int
    served: float
    id: int


def turns(waiting: Iterable[Waiting]) -> dict[int, Turn]:
    """Return the turn of each order, by number.

    The orders of one asker keep the order of their requests. In each round every asker gets one,
    first who was served longest ago: who asks for ten comparisons at once does not delay whoever
    asks a moment later by more than one boot for each of theirs (round robin, Nagle 1987).
    """
    taken: Counter[tuple[str | None, int, str | None]] = Counter()
    found = {}
    for order in sorted(waiting, key=lambda order: order.id):
        place = (order.testbox, order.priority, order.asker)
        served = -math.inf if order.served is None else -order.served
        found[order.id] = Turn(-order.priority, taken[place], served, order.id)
        taken[place] += 1
    return found
