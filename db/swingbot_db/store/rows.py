"""Base class of the stores, and conversions of values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa


class Rows:
    """A part of the store; lives as long as its transaction."""

    def __init__(self, conn: sa.Connection) -> None:
        self.conn = conn

    def select(self, sql: str, **values: Any) -> Sequence[sa.Row[Any]]:
        return self.conn.execute(sa.text(sql), values).all()

    def select_one(self, sql: str, **values: Any) -> sa.Row[Any] | None:
        return self.conn.execute(sa.text(sql), values).first()

    def scalar(self, sql: str, **values: Any) -> Any:
        return self.conn.execute(sa.text(sql), values).scalar()

    def execute(self, sql: str, **values: Any) -> int:
        return self.conn.execute(sa.text(sql), values).rowcount


def iso_time(moment: datetime) -> str:
    """UTC, ISO 8601, with microseconds, as in documents."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
