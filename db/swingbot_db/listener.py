"""Notifications of the database: which tables have changed (trigger `wake`)."""

from __future__ import annotations

import sqlalchemy as sa

from swingbot_db.engine import away, own_session


class Listener:
    """A session of its own on the channel `swingbot`. Methods raise DatabaseAway if it is lost."""

    def __init__(self, engine: sa.Engine) -> None:
        with away():
            self._session = own_session(engine)
            with self._session.cursor() as cursor:
                cursor.execute("LISTEN swingbot")

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is something to hear."""
        with away():
            return int(self._session.fileno())

    def heard(self) -> set[str]:
        """Return the tables that have changed since the last call, without waiting."""
        with away():
            self._session.poll()
            tables = {notification.payload for notification in self._session.notifies}
            self._session.notifies.clear()
        return tables

    def close(self) -> None:
        self._session.close()
