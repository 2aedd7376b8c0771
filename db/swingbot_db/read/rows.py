"""Helpers of the read models: run a query, convert its values, parse ids, filter lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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


# Where the names that a filter may have are listed; other filters have words, or take any text.
_NAMES: Final = {
    "tree": "SELECT DISTINCT name FROM tree ORDER BY name",
    "testbox": "SELECT name FROM testbox ORDER BY name",
    "person": "SELECT DISTINCT who AS name FROM asked ORDER BY who",
}
_FEW: Final = 20  # values that an error lists
SINCE: Final = "since"  # a filter by time
VALUES: Final = ":values"  # in a condition: all values of its filter


def asked_for(column: str, id: str) -> str:
    """Return a condition: any of the persons asked for what has this id in a `column` of asked."""
    return f"EXISTS (SELECT FROM asked q WHERE q.{column} = {id} AND q.who = ANY({VALUES}))"


def has_part(expression: str) -> str:
    """Return a condition: any of the values is a part of the expression."""
    return (
        f"EXISTS (SELECT FROM unnest(CAST({VALUES} AS text[])) w WHERE strpos({expression}, w) > 0)"
    )


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list can be filtered by: SQL expressions by name, and the words of some of them.

    An expression with `:values` is a condition on all that are given; `since` is a time.
    """

    columns: Mapping[str, str]
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def choices(self, conn: sa.Connection) -> dict[str, list[str]]:
        """The values that each filter may have; none: any text."""
        return {name: self._known(conn, name) for name in (*self.columns, *self._further)}

    @property
    def _further(self) -> list[str]:
        return [name for name in self.words if name not in self.columns]

    def _known(self, conn: sa.Connection, name: str) -> list[str]:
        if name in self.words:
            return list(self.words[name])
        return [row["name"] for row in rows(conn, _NAMES[name])] if name in _NAMES else []

    def check(self, conn: sa.Connection, filters: Mapping[str, Any] | None) -> None:
        """Raise ValueError for a value that a filter with known values cannot have."""
        for name, value in (filters or {}).items():
            if value in (None, "") or name not in (*self.columns, *self.words):
                continue
            if name == SINCE:
                _time(str(value))
            known = self._known(conn, name) if name in _NAMES or name in self.words else None
            for one in str(value).split(",") if known is not None else ():
                if known is not None and one not in known:
                    some = ", ".join(known[:_FEW]) + (" ..." if len(known) > _FEW else "")
                    raise ValueError(
                        f"{name} cannot be {one[:80]!r}; it is one of {some or '(none yet)'}"
                    )


def _time(text: str) -> datetime:
    """Raises ValueError."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{SINCE} must be a time in UTC, such as 2026-01-02 or 2026-01-02T03:04Z, not"
            f" {text[:80]!r}"
        ) from None


def where(filters: Mapping[str, Any] | None, allowed: Mapping[str, str]) -> tuple[str, Row]:
    """A WHERE clause from `filters`; `allowed` maps filter names to SQL expressions.

    None or an empty value is ignored; a value with commas means any of them. Raises ValueError for
    an unknown filter.
    """
    clauses: list[str] = []
    params: Row = {}
    for name, value in (filters or {}).items():
        if value in (None, ""):
            continue
        if name not in allowed:
            raise ValueError(f"unknown filter {name!r}; filters are {', '.join(allowed)}")
        if name == SINCE:
            clauses.append(f"{allowed[name]} >= :f_{name}")
            params[f"f_{name}"] = _time(str(value))
            continue
        condition = allowed[name]
        if VALUES not in condition:
            condition = f"CAST({condition} AS text) = ANY({VALUES})"
        clauses.append(condition.replace(VALUES, f":f_{name}"))
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
