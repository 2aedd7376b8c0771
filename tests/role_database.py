"""A database with the roles of a fleet, and sessions of them. Roles belong to a whole server."""

from __future__ import annotations

from contextlib import ExitStack

import psycopg2
import sqlalchemy as sa

from swingbot_db import migrate, roles
from swingbot_db.engine import make_engine


class RoleDatabase:
    """A migrated database with its roles; sessions of a role are closed at the end."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self.url, self._stack = sa.make_url(url), stack
        admin = self.engine(None)
        roles.make(admin, {})
        with admin.connect() as conn:
            migrate.upgrade(self.engine(roles.OWNER))
            assert conn.exec_driver_sql("SELECT count(*) FROM swingbot.v_swings").scalar() == 0

    def engine(self, role: str | None) -> sa.Engine:
        url = self.url.set(username=role) if role else self.url
        made = make_engine(url.render_as_string(hide_password=False))
        self._stack.callback(made.dispose)
        return made

    def session(self, role: str) -> psycopg2.extensions.connection:
        """A session as Grafana's driver has it: each statement is a transaction of its own."""
        url = self.url.set(username=role, drivername="postgresql")
        session = psycopg2.connect(url.render_as_string(hide_password=False))
        session.autocommit = True
        self._stack.callback(session.close)
        return session
