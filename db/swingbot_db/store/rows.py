"""Base class of the stores, and conversions of values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import sqlalchemy as sa

Record = TypeVar("Record")


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


def records(
    kind: Callable[..., Record], rows: Sequence[sa.Row[Any]], without: Collection[str] = ()
) -> list[Record]:
    """Return a record for each row of one query; its fields are the columns but those `without`.

    The names of the columns are read once: `row._mapping` makes a list of them for each row, which
    takes longer than the record itself.
    """
    if not rows:
        return []
    places = [(name, at) for at, name in enumerate(rows[0]._fields) if name not in without]
    return [kind(**{name: row[at] for name, at in places}) for row in rows]


def iso_time(moment: datetime) -> str:
    """UTC, ISO 8601, with microseconds, as in documents."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
