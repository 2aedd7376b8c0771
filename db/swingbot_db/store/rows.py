"""The few ways in which the store speaks to its transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa


class Rows:
    """A part of the store: lives as long as its transaction."""

    def __init__(self, conn: sa.Connection) -> None:
        self.conn = conn

    def all(self, sql: str, **values: Any) -> Sequence[sa.Row[Any]]:
        return self.conn.execute(sa.text(sql), values).all()

    def first(self, sql: str, **values: Any) -> sa.Row[Any] | None:
        return self.conn.execute(sa.text(sql), values).first()

    def value(self, sql: str, **values: Any) -> Any:
        return self.conn.execute(sa.text(sql), values).scalar()

    def do(self, sql: str, **values: Any) -> int:
        return self.conn.execute(sa.text(sql), values).rowcount
