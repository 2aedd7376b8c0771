"""Noise records and anchors, for pages and `--json`."""

from __future__ import annotations

import sqlalchemy as sa

from .rows import Row, rows, shown

_RECORDS = """
SELECT unit_job, metric, detail, 'x' || through AS through, at FROM noise_record
  WHERE testbox = :name ORDER BY unit_job, metric
"""
_ANCHORS = """
SELECT c.id, c.status, c.reason, v.commit, v.subject, c.boots,
  coalesce(c.ended_at, c.created_at) AS at
FROM comparison_pair c JOIN comparison_part p ON p.comparison = c.id JOIN variant v ON v.id = c.base
WHERE c.kind = 'anchor' AND p.testbox = :name ORDER BY c.id DESC LIMIT 10
"""


def noise_records(conn: sa.Connection, testbox: str) -> list[Row]:
    """One row per unit job and metric, with the number of boots.

    `run`, `boot`, `boot_mean`, `pair`, `day`, `layout` are {"sd", "df"}; an unknown sd is None.
    """
    return [
        {key: row[key] for key in ("unit_job", "metric", "through", "at")}
        | plain_record(row["detail"])
        for row in rows(conn, _RECORDS, name=testbox)
    ]


def anchors(conn: sa.Connection, testbox: str) -> list[Row]:
    """The last ten anchor boots of the testbox; `reason` is the problem, None if there was none."""
    return [
        row | {"id": shown("comparison", row["id"])} for row in rows(conn, _ANCHORS, name=testbox)
    ]


def plain_record(detail: Row) -> Row:
    """An unknown value is None, never 0."""
    return {
        key: {**value, "sd": value["sd"] if value["df"] else None}
        if isinstance(value, dict)
        else value
        for key, value in detail.items()
    }
