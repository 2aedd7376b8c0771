"""Dump and restore of the schema `swingbot`: each table by COPY, all from one snapshot.

The tables are created by migrations, not from the dump, so the versions of PostgreSQL may differ
and no PostgreSQL client program is needed. Views are recreated; Buildbot's tables are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import sqlalchemy as sa

from swingbot_db import migrate

_TABLES: Final = """
SELECT c.relname AS name, pg_table_size(c.oid) AS bytes,
       array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = '') AS columns
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = 'swingbot' AND c.relkind = 'r' AND c.relname <> 'schema_revision'
  GROUP BY c.oid, c.relname ORDER BY c.relname
"""
_SEQUENCES: Final = (
    "SELECT sequencename AS name, COALESCE(last_value, 0) AS last FROM pg_sequences"
    " WHERE schemaname = 'swingbot' ORDER BY 1"
)
_OWNED: Final = """
SELECT s.relname AS name, t.relname AS "table", a.attname AS "column" FROM pg_class s
  JOIN pg_namespace n ON n.oid = s.relnamespace
JOIN pg_depend d ON d.objid = s.oid AND d.classid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
  JOIN pg_class t ON t.oid = d.refobjid
JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid WHERE n.nspname = 'swingbot'
  AND s.relkind = 'S' ORDER BY 1
"""
_FOREIGN_KEYS: Final = """
SELECT c.conrelid::regclass::text AS "table", quote_ident(c.conname) AS name,
  pg_get_constraintdef(c.oid) AS definition
FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace WHERE n.nspname = 'swingbot'
  AND c.contype = 'f' ORDER BY 1, 2
"""
_IN_USE: Final = """
SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND (n.nspname = 'swingbot' OR (n.nspname = 'public'
  AND c.relname = 'buildrequests')) ORDER BY 1 LIMIT 1
"""

# The service may have used these numbers after the backup. Mails, workers and people may know them,
# so they are not used again.
GAP: Final = 1_000
GAPS: Final = {
    "orders_id_seq": 100_000,
    "attempt_id_seq": 100_000,
    "dispatch_id_seq": 100_000,
    "boot_id_seq": 100_000,
    "lease_fence_seq": 100_000,
}


class DumpError(Exception):
    """The tables do not match the dump; the message says how."""


class DumpWriter(Protocol):
    def write(self, chunk: bytes, /) -> object: ...


class DumpReader(Protocol):
    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpTable:
    """A table with its columns; `bytes` is its size in the database, for an estimate."""

    name: str
    columns: tuple[str, ...]
    bytes: int


def tables(conn: sa.Connection) -> list[DumpTable]:
    return [
        DumpTable(name=row.name, columns=tuple(row.columns), bytes=row.bytes)
        for row in conn.execute(sa.text(_TABLES))
    ]


def sequences(conn: sa.Connection) -> dict[str, int]:
    """Last value of each sequence; never behind the snapshot."""
    return {row.name: row.last for row in conn.execute(sa.text(_SEQUENCES))}


def server_version(conn: sa.Connection) -> str:
    return str(conn.execute(sa.text("SHOW server_version")).scalar_one())


def write_table(conn: sa.Connection, table: DumpTable, out: DumpWriter) -> int:
    """Write the rows of a table in COPY's text format; return their number."""
    cursor = conn.connection.cursor()
    try:
        cursor.copy_expert(
            f"COPY {_quoted(table.name)} ({', '.join(map(_quoted, table.columns))}) TO STDOUT", out
        )
        return int(cursor.rowcount)
    finally:
        cursor.close()


def in_use(conn: sa.Connection) -> str | None:
    """Return a table of swingbot or Buildbot that exists; None in an unused database."""
    table = conn.execute(sa.text(_IN_USE)).scalar()
    return None if table is None else str(table)


@contextmanager
def filling(engine: sa.Engine, revision: str) -> Iterator[sa.Connection]:
    """Create the empty tables of `revision`, for one transaction.

    Foreign keys and triggers are disabled until the end of the transaction.
    """
    migrate.upgrade(engine, revision)
    with engine.begin() as conn:
        keys = conn.execute(sa.text(_FOREIGN_KEYS)).all()
        for key in keys:
            conn.exec_driver_sql(f"ALTER TABLE {key.table} DROP CONSTRAINT {key.name}")
        names = [_quoted(table.name) for table in tables(conn)]
        conn.exec_driver_sql(f"TRUNCATE {', '.join(names)}")
        for name in names:
            conn.exec_driver_sql(f"ALTER TABLE {name} DISABLE TRIGGER USER")
        yield conn
        for key in keys:
            conn.exec_driver_sql(
                f"ALTER TABLE {key.table} ADD CONSTRAINT {key.name} {key.definition}".replace(
                    "%", "%%"
                )
            )
        for name in names:
            conn.exec_driver_sql(f"ALTER TABLE {name} ENABLE TRIGGER USER")


def read_table(conn: sa.Connection, name: str, columns: Sequence[str], source: DumpReader) -> int:
    """Fill one table from COPY's text format; return the number of rows.

    Raises DumpError if the table or a column does not exist.
    """
    columns_of = {table.name: table.columns for table in tables(conn)}
    if name not in columns_of or not set(columns) <= set(columns_of[name]):
        raise DumpError(
            f"the schema of this revision has no table {name} with the columns"
            f" {', '.join(columns)}: the backup does not fit its own revision"
        )
    cursor = conn.connection.cursor()
    try:
        cursor.copy_expert(
            f"COPY {_quoted(name)} ({', '.join(map(_quoted, columns))}) FROM STDIN", source
        )
        return int(cursor.rowcount)
    finally:
        cursor.close()


def set_sequences(conn: sa.Connection, last: Mapping[str, int]) -> None:
    """Advance each sequence well past its last value at the backup and past every number used."""
    for row in conn.execute(sa.text(_OWNED)).all():
        highest = conn.execute(
            sa.text(f"SELECT COALESCE(max({_quoted(row.column)}), 0) FROM {_quoted(row.table)}")
        ).scalar_one()
        value = max(int(highest), last.get(row.name, 0)) + GAPS.get(row.name, GAP)
        conn.execute(
            sa.text("SELECT setval(CAST(:name AS regclass), :value)"),
            {"name": f"swingbot.{_quoted(row.name)}", "value": value},
        )


_RESET: Final[Sequence[tuple[str, str]]] = (
    (
        "dispatches",
        "UPDATE dispatch SET state = 'over', result = 'exception', ended_at = now() WHERE state <>"
        " 'over'",
    ),
    ("leases", "DELETE FROM lease"),
    # One more attempt, because the order is not at fault when the service is lost.
    (
        "orders",
        "UPDATE orders o SET state = CASE WHEN o.state = 'running' THEN 'ready' ELSE o.state END,"
        " budget = budget + 1"
        " WHERE EXISTS (SELECT FROM attempt a WHERE a.order_id = o.id AND a.state = 'running')",
    ),
    (
        "attempts",
        "UPDATE attempt SET state = 'dead', reason = :why, ended_at = now() WHERE state ="
        " 'running'",
    ),
    (
        "mails in doubt",
        "UPDATE report SET state = 'unknown', reason = :mail WHERE state = 'sending'",
    ),
    ("mails held", "UPDATE report SET state = 'held', reason = :mail WHERE state = 'queued'"),
    (
        "",
        "UPDATE outbox SET error = :mail FROM report r WHERE r.id = outbox.report AND r.state IN"
        " ('unknown', 'held') AND r.reason = :mail",
    ),
    (
        "",
        "UPDATE testbox_now SET state = 'idle', why = :why, attempt = NULL, since = now() WHERE"
        " state IN ('leased', 'booting', 'running', 'returning')",
    ),
    # no trigger records these changes
    ("", "INSERT INTO unseen DEFAULT VALUES ON CONFLICT DO NOTHING"),
    (
        "",
        "UPDATE mail_switch SET stopped = true, who = 'swingbot restore', why = :stop, at = now()",
    ),
)


def make_sound(conn: sa.Connection, taken_at: str) -> dict[str, int]:
    """End everything that was in progress at the backup and stop all mail; return counts by kind.

    Running attempts are dead and will be repeated; uploads of their workers are refused because the
    secret has changed. Mails that were being sent become unknown, queued ones held, and the switch
    is set to stop, because mails sent after the backup are not known.
    """
    words: dict[str, Any] = {
        "why": f"the service was restored from the backup of {taken_at}",
        "mail": (
            f"restored from the backup of {taken_at}: it may have been sent since; look"
            " for its Message-ID, then release or drop it"
        ),
        "stop": (
            f"restored from the backup of {taken_at}: check which mails were sent after"
            " it, then run `swingbot report resume`"
        ),
    }
    changed: dict[str, int] = {}
    for name, statement in _RESET:
        count = conn.execute(
            sa.text(statement),
            {key: value for key, value in words.items() if f":{key}" in statement},
        ).rowcount
        if name:
            changed[name] = count
    return changed


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
