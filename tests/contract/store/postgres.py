"""PostgreSQL as a contract test sees it: every transaction is a savepoint of one that is rolled
back at the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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

    def deliver(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        self._do(
            (
                "UPDATE attempt SET state = 'ended', outcome = CAST(:outcome AS jsonb),"
                " ended_at = clock_timestamp() WHERE id = :id AND state = 'running'"
            ),
            id=attempt,
            outcome=json.dumps(outcome),
        )

    def end_dispatch(self, attempt: int, result: str) -> None:
        self._do(
            (
                "UPDATE dispatch SET state = 'over', result = :result,"
                " ended_at = clock_timestamp() WHERE attempt = :id AND state <> 'over'"
            ),
            id=attempt,
            result=result,
        )

    def hold_lease(self, testbox: str, holder: str, seconds: float) -> None:
        self._do(
            (
                "UPDATE lease SET holder = :holder, until = clock_timestamp() + "
                "make_interval(secs =>"
                " :s) WHERE testbox = :testbox"
            ),
            holder=holder,
            s=seconds,
            testbox=testbox,
        )
