"""The compilers of the build workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from .rows import Row, rows, where

_LIST: Final = """SELECT c.worker, c.name, c.version, c.problem, c.announced_at
FROM worker_compiler c
{where} ORDER BY c.worker COLLATE "C", c.name COLLATE "C" LIMIT :limit"""


def list_compilers(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 500
) -> list[Row]:
    """{worker, name, version, problem, announced_at} by worker and name.

    `problem` is None if kernels can be built. Filters: worker, name.
    """
    clause, params = where(filters, {"worker": "c.worker", "name": "c.name"})
    return rows(conn, _LIST.format(where=clause), limit=limit, **params)
