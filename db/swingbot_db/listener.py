"""Notifications of the database: which tables have changed (trigger `wake`)."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from swingbot.core.model.dispatch import DatabaseAway
from swingbot_db import limits
from swingbot_db.engine import away, own_session

NAME: Final = "swingbot listener"


class Listener:
    """A session of its own on the channel `swingbot`. Methods raise DatabaseAway if it is lost."""

    def __init__(self, engine: sa.Engine) -> None:
        with away():
            self._session = own_session(engine)
            with self._session.cursor() as cursor:
                cursor.execute("SELECT set_config('application_name', %s, false)", (NAME,))
                cursor.execute("LISTEN swingbot")

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is something to hear."""
        with away():
            return int(self._session.fileno())

    def heard(self) -> set[str]:
        """Return the tables that have changed since the last call, without waiting.

        Every role may notify. Raises DatabaseAway if there are more after `NOTIFICATIONS` reads; a
        new listener begins after them.
        """
        tables = set[str]()
        for _ in range(limits.NOTIFICATIONS):
            with away():
                self._session.poll()
                notifications = list(self._session.notifies)
                self._session.notifies.clear()
            if not notifications:
                return tables
            tables |= {notification.payload for notification in notifications}
        raise DatabaseAway("notifications arrive faster than they are read")

    def unseen(self) -> bool:
        """Return whether a change waits for a round. A notification alone may be anybody's."""
        with away(), self._session.cursor() as cursor:
            cursor.execute("SELECT EXISTS (SELECT FROM unseen)")
            (found,) = cursor.fetchone() or (False,)
        return bool(found)

    def close(self) -> None:
        self._session.close()
