"""Tables for tokens that see no levels: verdicts and changes in percent, of views that have no more
(`swingbot_db/scope.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot.core.model.change_documents import TableOfChanges
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.statuses import ComparisonKind, ComparisonStatus, words

from .rows import Filters, Row, first, number, piece, rows, where

_TABLE: Final = "SELECT * FROM changed_table WHERE id = :id"
_ROWS: Final = """
SELECT testbox, test, metric, arm, reference, against, verdict, change_pct, low_pct, high_pct
FROM changed_row WHERE comparison = :id
ORDER BY array_position(ARRAY['worse', 'changed', 'better', 'unclear', 'invalid', 'same'], verdict),
  abs(change_pct) DESC NULLS LAST, testbox, test, metric, against, arm
"""
_LIST: Final = """
SELECT {key}, c.*, r.worse, r.better, r.changed, r.same, r.unclear
FROM changed_table c CROSS JOIN LATERAL (
  SELECT count(*) FILTER (WHERE verdict = 'worse') AS worse,
    count(*) FILTER (WHERE verdict = 'better') AS better,
    count(*) FILTER (WHERE verdict = 'changed') AS changed,
    count(*) FILTER (WHERE verdict = 'same') AS same,
    count(*) FILTER (WHERE verdict IN ('unclear', 'invalid')) AS unclear
  FROM changed_row WHERE comparison = c.id
) r
{where} ORDER BY {order} LIMIT :limit
"""
_FILTERS: Final = Filters(
    {"status": "c.status", "kind": "c.kind", "since": "c.created_at"},
    {"status": words(ComparisonStatus), "kind": words(ComparisonKind)},
)


def table_of_changes(conn: sa.Connection, id: int | str) -> TableOfChanges:
    """What changed in a table. Raises NotFound."""
    kind = "experiment" if isinstance(id, str) and id.startswith("e") else "comparison"
    row = first(conn, _TABLE, id=number(kind, id))
    if row is None or ids.of_table(row["kind"], row["id"]) != ids.show(kind, row["id"]):
        raise NotFound(missing(kind, number(kind, id)))
    return cast(
        TableOfChanges, _named(row) | {"rows": [_row(r) for r in rows(conn, _ROWS, id=row["id"])]}
    )


def list_of_changes(
    conn: sa.Connection,
    plural: str,
    filters: Mapping[str, Any] | None = None,
    limit: int = 50,
    after: str = "",
) -> ListPiece:
    """Lines (`LineOfChanges`), the newest first; `plural` is comparisons or experiments.

    Filters: status, kind, since. Raises ValueError, BadCursor.
    """
    _FILTERS.check(conn, filters)
    clause, params = where(filters, _FILTERS.columns)
    of_kind = f"(c.kind = 'experiment') = {plural == 'experiments'}"
    clause += f"{' AND ' if clause else 'WHERE '}{of_kind}"
    some = piece(conn, _LIST, (("-c.id", int),), (clause, params), limit=limit, after=after)
    return some.with_rows(_named(row) for row in some)


def _named(row: Row) -> Row:
    return row | {"id": ids.of_table(row["kind"], row["id"])}


def _row(row: Row) -> Row:
    low, high = row.pop("low_pct"), row.pop("high_pct")
    return row | {"interval_pct": None if low is None or high is None else [low, high]}
