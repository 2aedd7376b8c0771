"""Values for /metrics, one query each; no query scans all samples."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from .rows import Row, rows

QUERIES: Final = {
    "orders": """SELECT kind, state, count(*) AS n,
        extract(epoch FROM now() - min(created_at))::float AS oldest
        FROM orders WHERE state IN ('waiting', 'ready', 'running') GROUP BY kind, state""",
    "attempts": """SELECT o.kind, CASE a.state WHEN 'ended' THEN coalesce(a.outcome ->> 'status',
      'ended') ELSE a.state END AS status, count(*) AS n
        FROM attempt a JOIN orders o ON o.id = a.order_id
          WHERE a.created_at > now() - interval '1 day' GROUP BY 1, 2""",
    "boots": (
        "SELECT testbox, outcome, count(*) AS n, sum(seconds)::float AS seconds FROM"
        " boot GROUP BY testbox, outcome"
    ),
    "runs": """SELECT x.testbox, r.status, count(*) AS n FROM run r JOIN boot x ON x.id = r.boot
        WHERE x.booted_at > now() - interval '1 day' GROUP BY x.testbox, r.status""",
    "builds": (
        "SELECT status, cached, count(*) AS n, sum(seconds)::float AS seconds FROM"
        " kernel_build GROUP BY status, cached"
    ),
    "testboxes": """SELECT x.name, x.state, EXISTS (SELECT FROM lease l
      WHERE l.testbox = x.name) AS leased,
        (SELECT extract(epoch FROM now() - max(b.booted_at))::float FROM boot b
          WHERE b.testbox = x.name) AS since
        FROM testbox x WHERE x.state <> 'gone'""",
    "phases": "SELECT testbox, state FROM testbox_now",
    "alerts": "SELECT kind, count(*) AS n FROM alert WHERE ended_at IS NULL GROUP BY kind",
    "reports": "SELECT state, count(*) AS n FROM report GROUP BY state",
    "mail": """SELECT s.stopped, (SELECT extract(epoch FROM now() - min(r.created_at))::float
      FROM report r WHERE r.state IN ('queued', 'sending')) AS oldest
        FROM mail_switch s""",
    "open": """SELECT (SELECT count(*) FROM bisection WHERE status = 'running') AS bisections,
        (SELECT count(*) FROM comparison WHERE status IN ('waiting', 'running')) AS comparisons,
        (SELECT count(*) FROM incident WHERE status = 'open') AS incidents""",
    "trees": (
        "SELECT name, problem IS NOT NULL AS failing, extract(epoch FROM now() -"
        " polled_at)::float AS since FROM tree WHERE state = 'watched'"
    ),
    "database": "SELECT pg_database_size(current_database()) AS bytes",
}
_NEEDS: Final = {"phases": "swingbot.testbox_now", "alerts": "swingbot.alert"}


def figures(conn: sa.Connection) -> dict[str, list[Row]]:
    """Rows of each query, by its name."""
    conn.execute(sa.text("SET LOCAL statement_timeout = '20s'"))
    return {name: rows(conn, query) for name, query in QUERIES.items() if _is_there(conn, name)}


def _is_there(conn: sa.Connection, name: str) -> bool:
    return name not in _NEEDS or bool(
        rows(conn, "SELECT to_regclass(:name) IS NOT NULL AS there", name=_NEEDS[name])[0]["there"]
    )
