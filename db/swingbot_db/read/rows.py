"""Small tools of the read models: run a query, make its values plain, read ids, filter lists."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound

Row = dict[str, Any]


def plain(value: Any) -> Any:
    """A value as JSON has it: times in ISO 8601 (UTC, to the second), numerics as float."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return float(value) if isinstance(value, Decimal) else value


def rows(conn: sa.Connection, sql: str, /, **params: Any) -> list[Row]:
    return [
        {key: plain(value) for key, value in row.items()}
        for row in conn.execute(sa.text(sql), params).mappings()
    ]


def first(conn: sa.Connection, sql: str, /, **params: Any) -> Row | None:
    found = rows(conn, sql, **params)
    return found[0] if found else None


def number(kind: str, given: int | str) -> int:
    """`number("comparison", "c5")` is 5; a bare number is taken as it is. Raises BadId for anything else."""
    if isinstance(given, int):
        return given
    return (
        int(given)
        if given.isascii() and given.isdigit() and len(given) < 19
        else ids.read(given, kind)[1]
    )


def shown(kind: str, given: int | None) -> str | None:
    return None if given is None else ids.show(kind, given)


def by_id(
    conn: sa.Connection, sql: str, kind: str, given: int | str, *, plural: str | None = None
) -> Row:
    """The one row of `sql` for `:id`, or NotFound with a sentence."""
    wanted = number(kind, given)
    found = first(conn, sql, id=wanted)
    if found is None:
        raise NotFound(
            f"there is no {kind} {ids.show(kind, wanted)}"
            + (f"; `swingbot list {plural}` shows those there are" if plural else "")
        )
    return found


def where(filters: Mapping[str, Any] | None, allowed: Mapping[str, str]) -> tuple[str, Row]:
    """A WHERE clause from `filters` by the columns in `allowed` (name -> SQL expression); ValueError names an unknown filter.

    A filter that is None or empty is no filter; a value with commas means any of them.
    """
    clauses, params = [], {}
    for name, value in (filters or {}).items():
        if value in (None, ""):
            continue
        if name not in allowed:
            raise ValueError(f"unknown filter {name!r}; known are {', '.join(allowed)}")
        clauses.append(f"CAST({allowed[name]} AS text) = ANY(:f_{name})")
        params[f"f_{name}"] = str(value).split(",")
    return ("WHERE " + " AND ".join(clauses) if clauses else ""), params
