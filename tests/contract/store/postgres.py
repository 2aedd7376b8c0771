"""PostgreSQL as a contract test sees it: every transaction is a savepoint of one that is rolled
back at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from swingbot_db.store import PgTransaction

_TIMES: Final = r"""SELECT table_name,
  string_agg(format('%I = %I - make_interval(secs => \:s)', column_name, column_name), ', ')
  AS moved
  FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
  WHERE table_schema = 'swingbot' AND data_type = 'timestamp with time zone'
    AND table_type = 'BASE TABLE'
  GROUP BY table_name"""


@dataclass(frozen=True)
class PostgresStore:
    conn: sa.Connection

    @contextmanager
    def transaction(self, name: str = "test") -> Iterator[PgTransaction]:
        with self.conn.begin_nested():
            yield PgTransaction(self.conn)

    def _do(self, sql: str, **values: Any) -> None:
        self.conn.execute(sa.text(sql), values)

    def pass_time(self, seconds: float) -> None:
        """The clock cannot be moved, so all that is dated becomes older."""
        for row in self.conn.execute(sa.text(_TIMES)).all():
            self._do(f"UPDATE {row.table_name} SET {row.moved}", s=seconds)
