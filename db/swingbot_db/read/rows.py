"""Helpers of the read models: run a query, convert its values, parse ids, filter lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model import cursor, ids
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.lookup import NotFound, missing

Row = dict[str, Any]

# What a list is sorted by, ascending: SQL expressions that are never null, with the type of each.
SortKey = Sequence[tuple[str, type]]

# State of the order `o`. One that Buildbot has accepted but not started, such as a build behind
# another one, is ready.
ORDER_STATE: Final = """CASE WHEN o.state = 'running' AND EXISTS (
    SELECT 1 FROM attempt a JOIN dispatch d ON d.attempt = a.id AND d.state <> 'over'
    WHERE a.order_id = o.id AND a.state = 'running' AND d.bb_number IS NULL)
  THEN 'ready' ELSE o.state END"""


def plain(value: Any) -> Any:
    """Convert a value for JSON: times to ISO 8601 (UTC, to the second), numerics to float."""
    convert = _PLAIN.get(type(value))
    return value if convert is None else convert(value)


_PLAIN: Final[Mapping[type, Callable[[Any], Any]]] = {
    datetime: lambda time: time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    Decimal: float,
}


def rows(conn: sa.Connection, sql: str, /, **params: Any) -> list[Row]:
    result = conn.execute(sa.text(sql), params)
    keys = list(result.keys())  # once: a mapping of a row computes them again
    return [dict(zip(keys, map(plain, row), strict=True)) for row in result.all()]


def first(conn: sa.Connection, sql: str, /, **params: Any) -> Row | None:
    matches = rows(conn, sql, **params)
    return matches[0] if matches else None


def number(kind: str, id_: int | str) -> int:
    """`number("comparison", "c5")` is 5; a bare number is accepted. Raises BadId otherwise."""
    if isinstance(id_, int):
        return id_
    return int(id_) if id_.isascii() and id_.isdigit() and len(id_) < 19 else ids.read(id_, kind)[1]


def shown(kind: str, id_: int | None) -> str | None:
    return None if id_ is None else ids.show(kind, id_)


def by_id(conn: sa.Connection, sql: str, kind: str, id_: int | str) -> Row:
    """The one row of `sql` for `:id`; raises NotFound with a sentence."""
    key = number(kind, id_)
    row = first(conn, sql, id=key)
    if row is None:
        raise NotFound(missing(kind, key))
    return row


def where(filters: Mapping[str, Any] | None, allowed: Mapping[str, str]) -> tuple[str, Row]:
    """A WHERE clause from `filters`; `allowed` maps filter names to SQL expressions.

    None or an empty value is ignored; a value with commas means any of them. Raises ValueError for
    an unknown filter.
    """
    clauses, params = [], {}
    for name, value in (filters or {}).items():
        if value in (None, ""):
            continue
        if name not in allowed:
            raise ValueError(f"unknown filter {name!r}; filters are {', '.join(allowed)}")
        clauses.append(f"CAST({allowed[name]} AS text) = ANY(:f_{name})")
        params[f"f_{name}"] = str(value).split(",")
    return ("WHERE " + " AND ".join(clauses) if clauses else ""), params


def piece(
    conn: sa.Connection,
    sql: str,
    order: SortKey,
    filtered: tuple[str, Row],
    *,
    limit: int,
    after: str = "",
) -> ListPiece:
    """At most `limit` rows after a cursor ('': the first ones).

    `sql` has places for `{key}` (a column), `{where}` and `{order}`, and ends with the parameter
    `:limit`; `filtered` is the answer of `where`. Raises BadCursor.
    """
    clause, params = filtered
    names, types = zip(*order, strict=True)
    key = ", ".join(names)
    if after:
        given = {f"after_{at}": value for at, value in enumerate(cursor.decode(after, types))}
        params = params | given
        placed = ", ".join(f":{name}" for name in given)
        clause += f"{' AND ' if clause else 'WHERE '}({key}) > ({placed})"
    text = sql.format(where=clause, order=key, key=f"jsonb_build_array({key}) AS sort_key")
    found = rows(conn, text, limit=limit + 1, **params)
    keys = [row.pop("sort_key") for row in found]
    some = ListPiece(found[:limit])
    some.next = cursor.encode(keys[limit - 1]) if len(found) > limit else None
    return some
