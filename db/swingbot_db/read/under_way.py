"""Requests of the lab, a tree or a person that are not over, each with what is left."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from .bisections import bisection, list_bisections
from .estimate import LabQueue
from .rows import Row
from .tables import list_tables, table


def under_way(conn: sa.Connection, only: Mapping[str, str], queue: LabQueue | None = None) -> Row:
    """`open_tables` and `open_bisections`; `only` has filters that both lists know."""
    tables = list_tables(conn, {**only, "status": "waiting,running"}, 20)
    searches = list_bisections(conn, {**only, "status": "running"}, 10)
    if tables or searches:
        queue = queue or LabQueue.load(conn)
    return {
        "open_tables": [table(conn, one["id"], metrics=[], queue=queue) for one in tables],
        "open_bisections": [bisection(conn, one["id"], queue=queue) for one in searches],
    }
