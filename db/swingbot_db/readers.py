"""Sessions of the roles that read for Grafana, which anyone who sees a board can use: an end to
those that hold up others, whatever they set for themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa

from swingbot_db import limits, roles
from swingbot_db.listener import NAME

# Sessions with the processes that work for them.
_PROCESSES = """
SELECT coalesce(leader_pid, pid) AS session, pid, usename AS role FROM pg_stat_activity
WHERE usename = ANY(:readers) AND datname = current_database()
"""
# Both ages count: a statement may be many in one message, and a transaction may have no statement.
# Views need no advisory lock, and swingbot's own must not be taken by others. A queue of
# notifications that fills up stops the service: listeners come back at its end.
# Chosen first and ended afterwards: a planner may call a function in WHERE before other conditions.
_END = f"""
WITH old AS MATERIALIZED (
    SELECT a.pid, a.usename AS role, left(a.query, 200) AS query,
           coalesce(extract(epoch FROM clock_timestamp() - least(a.xact_start, a.query_start)), 0)
             ::float AS seconds
    FROM pg_stat_activity a, (SELECT pg_notification_queue_usage() > :queue AS full) q
    WHERE a.datname = current_database() AND a.backend_type = 'client backend'
      AND (a.usename = ANY(:readers)
             AND (q.full OR a.pid = ANY(:large)
               OR a.xact_start < clock_timestamp() - make_interval(secs => :seconds)
               OR a.state <> 'idle'
                 AND a.query_start < clock_timestamp() - make_interval(secs => :seconds)
               OR EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid
                 AND l.locktype = 'advisory'))
           OR q.full AND a.application_name = '{NAME}')
)
SELECT pid, role, query, seconds, pg_terminate_backend(pid) AS ended FROM old
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
class SessionProcess:
    """A process of the server that works for a session of a reader; `pid` is `session` or that of a
    parallel worker."""

    session: int
    pid: int
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedSession:
    """A session that was ended: its role, last statement (abbreviated), age in seconds and memory
    in bytes.
    """

    role: str
    query: str
    seconds: float
    memory: int


def end_long_sessions(
    engine: sa.Engine,
    seconds: float,
    memory_of: Callable[[SessionProcess], int],
    *,
    queue: float = limits.QUEUE_SHARE,
) -> list[EndedSession]:
    """End the readers' sessions in this database whose statement or transaction is older than
    `seconds`, which hold an advisory lock, and the largest while they have more than `READER_BYTES`
    together by `memory_of`.

    When notifications fill more than `queue` of the server's queue, end all of them and the
    listeners of the service. Raises WatchdogError.
    """
    with engine.begin() as conn:
        if conn.execute(sa.text(_MEMBER), {"watchdog": roles.WATCHDOG}).scalar():
            conn.exec_driver_sql(f"SET LOCAL ROLE {roles.WATCHDOG}")
        elif conn.execute(sa.text(_NEEDED), {"readers": list(roles.READERS)}).scalar():
            raise WatchdogError(
                "this database user cannot end long statements of Grafana's roles: repeat"
                " `swingbot db roles` as a database superuser"
            )
        readers, memory = list(roles.READERS), Counter[int]()
        for row in conn.execute(sa.text(_PROCESSES), {"readers": readers}).mappings():
            memory[row["session"]] += memory_of(SessionProcess(**row))
        large, total = list[int](), memory.total()
        for session, size in memory.most_common():
            if total <= limits.READER_BYTES:
                break
            large.append(session)
            total -= size
        found = conn.execute(
            sa.text(_END), {"readers": readers, "seconds": seconds, "large": large, "queue": queue}
        ).mappings()
        return [
            EndedSession(
                role=row["role"],
                query=row["query"],
                seconds=row["seconds"],
                memory=memory[row["pid"]],
            )
            for row in found
            if row["ended"]
        ]
