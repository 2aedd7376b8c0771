"""Database access of pages: one connection, one snapshot, read-only, with a time limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from ..ports import ReadModels

_PATIENCE = "15s"  # a slower page is a bug; it must not hold the database


@dataclass(frozen=True, slots=True)
class SnapshotReader:
    engine: sa.Engine
    read: ReadModels

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a read-only transaction in which every query sees the same state."""
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self.engine.connect().execution_options(**options) as conn:
            conn.execute(sa.text(f"SET LOCAL statement_timeout = '{_PATIENCE}'"))
            yield conn
