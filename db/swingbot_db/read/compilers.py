"""The compilers of the build workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model.cursor import ListPiece

from .rows import piece, where

_LIST: Final = """SELECT {key}, c.worker, c.name, c.version, c.problem, c.announced_at
FROM worker_compiler c
{where} ORDER BY {order} LIMIT :limit"""


def list_compilers(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 500, after: str = ""
) -> ListPiece:
    """{worker, name, version, problem, announced_at} by worker and name.

    `problem` is None if kernels can be built. Filters: worker, name.
    """
    filtered = where(filters, {"worker": "c.worker", "name": "c.name"})
    order = (('c.worker COLLATE "C"', str), ('c.name COLLATE "C"', str))
    return piece(conn, _LIST, order, filtered, limit=limit, after=after)
