"""Reading for a page: one connection, one snapshot, never a write, never for long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from .ports import ReadModels

_PATIENCE = "15s"  # a page that needs longer is a mistake; it must not hold the database


@dataclass(frozen=True, slots=True)
class SnapshotReader:
    engine: sa.Engine
    read: ReadModels

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A read-only transaction in which every query sees the same state."""
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self.engine.connect().execution_options(**options) as conn:
            conn.execute(sa.text(f"SET LOCAL statement_timeout = '{_PATIENCE}'"))
            yield conn
