"""Connections that wait for a request head: when there are too many, the oldest are closed.

A client that opens connections and sends no request takes the place of its own older ones, never
that of a client whose request has arrived. Such a connection takes no processor time, so the
budget of its client does not bound it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from swingbot.web import limits

# A head usually follows its connection at once; a younger connection is closed only if the
# connections of all clients exceed their limit.
GRACE_SECONDS: Final = 0.5


class Closable(Protocol):
    def abort(self) -> None: ...


class WaitingConnections:
    """Waiting connections by client, oldest first.

    `most` limits the connections of all clients, waiting or not. `shared` selects addresses of many
    clients (proxies), which have no limit of their own.
    """

    def __init__(self, most: int, shared: Callable[[str], bool] = lambda client: False) -> None:
        self._most, self._shared = most, shared
        self._waiting: dict[str, OrderedDict[Closable, float]] = {}

    def add(self, client: str, connection: Closable, now: float) -> None:
        """Count `connection` from `now` on, in seconds of any clock that does not go back."""
        self._waiting.setdefault(client, OrderedDict())[connection] = now

    def remove(self, client: str, connection: Closable) -> None:
        mine = self._waiting.get(client)
        if mine is not None and mine.pop(connection, None) is not None and not mine:
            del self._waiting[client]

    def crowded(self, total: int) -> bool:
        """Return True if `close_surplus` has something to close, now or after the grace period."""
        return total > self._most or any(
            len(mine) > limits.CLIENT_REQUESTS and not self._shared(client)
            for client, mine in self._waiting.items()
        )

    def close_surplus(self, total: int, now: float) -> int:
        """Close what exceeds the limits, and return the number; `total` connections are open."""
        closed = 0
        for client, mine in list(self._waiting.items()):
            while (
                not self._shared(client)
                and len(mine) > limits.CLIENT_REQUESTS
                and now - next(iter(mine.values())) > GRACE_SECONDS
            ):
                self._close_oldest(client)
                closed += 1
        while total - closed > self._most and self._waiting:
            self._close_oldest(max(self._waiting, key=lambda one: len(self._waiting[one])))
            closed += 1
        return closed

    def _close_oldest(self, client: str) -> None:
        connection = next(iter(self._waiting[client]))
        self.remove(client, connection)
        connection.abort()
