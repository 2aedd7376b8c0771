"""Connections that wait for a request head: when there are too many, the oldest are closed.

Such a connection takes a descriptor and no processor time, so the budget of its client does not
bound it. The client with the most loses its oldest, so one that opens connections and sends no
request takes its own places, never those of a client whose request has arrived.
"""

from __future__ import annotations

from typing import Protocol


class Closable(Protocol):
    def abort(self) -> None: ...


class WaitingConnections:
    """Waiting connections by client, oldest first. `most` limits all connections, waiting or
    not.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[str, dict[Closable, None]] = {}

    def add(self, client: str, connection: Closable) -> None:
        self._waiting.setdefault(client, {})[connection] = None

    def remove(self, client: str, connection: Closable) -> None:
        mine = self._waiting.get(client, {})
        mine.pop(connection, None)
        if not mine:
            self._waiting.pop(client, None)

    def crowded(self, total: int) -> bool:
        """Return True if `close_surplus` has something to close; `total` connections are open."""
        return total > self._most and bool(self._waiting)

    def close_surplus(self, total: int) -> int:
        """Close what exceeds the limit, and return the number."""
        closed = 0
        while self.crowded(total - closed):
            client = max(self._waiting, key=lambda one: len(self._waiting[one]))
            connection = next(iter(self._waiting[client]))
            self.remove(client, connection)
            connection.abort()
            closed += 1
        return closed
