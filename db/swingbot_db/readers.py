"""Sessions of the roles that read for Grafana, which anyone who sees a board can use: an end to
those that hold up others, whatever they set for themselves."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from swingbot_db import roles

# Both ages count: a statement may be many in one message, and a transaction may have no statement.
# Views need no advisory lock, and swingbot's own must not be taken by others.
# Chosen first and ended afterwards: a planner may call a function in WHERE before other conditions.
_END = """
WITH old AS MATERIALIZED (
    SELECT a.pid, a.usename AS role, left(a.query, 200) AS query,
           extract(epoch FROM clock_timestamp() - least(a.xact_start, a.query_start))::float
             AS seconds
    FROM pg_stat_activity a
    WHERE a.usename = ANY(:readers) AND a.datname = current_database()
      AND a.backend_type = 'client backend'
      AND (a.xact_start < clock_timestamp() - make_interval(secs => :seconds)
           OR a.state <> 'idle'
             AND a.query_start < clock_timestamp() - make_interval(secs => :seconds)
           OR EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.locktype = 'advisory'))
)
SELECT role, query, seconds, pg_terminate_backend(pid) AS ended FROM old
"""
_MEMBER = """
SELECT pg_has_role(current_user, r.oid, 'MEMBER') FROM pg_roles r WHERE r.rolname = :watchdog
"""
_NEEDED = """
SELECT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = ANY(:readers))
  AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
"""


class WatchdogError(Exception):
    """This user cannot end sessions of the readers; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSession:
    """A session that was ended: its role, last statement (abbreviated) and age in seconds."""

    role: str
    query: str
    seconds: float


def end_long_sessions(engine: sa.Engine, seconds: float) -> list[EndedSession]:
    """End the readers' sessions in this database whose statement or transaction is older than
    `seconds`, or which hold an advisory lock. Raises WatchdogError.
    """
    with engine.begin() as conn:
        if conn.execute(sa.text(_MEMBER), {"watchdog": roles.WATCHDOG}).scalar():
            conn.exec_driver_sql(f"SET LOCAL ROLE {roles.WATCHDOG}")
        elif conn.execute(sa.text(_NEEDED), {"readers": list(roles.READERS)}).scalar():
            raise WatchdogError(
                "this database user cannot end long statements of Grafana's roles: repeat"
                " `swingbot db roles` as a database superuser"
            )
        found = conn.execute(
            sa.text(_END), {"readers": list(roles.READERS), "seconds": seconds}
        ).mappings()
        return [
            EndedSession(role=row["role"], query=row["query"], seconds=row["seconds"])
            for row in found
            if row["ended"]
        ]
