"""Noise records and anchors, for pages and `--json`."""

from __future__ import annotations

import sqlalchemy as sa

from swingbot.core.model.comparison_row import Key, key_of
from swingbot_db.store.anchors import Anchors
from swingbot_db.store.variants import Variants

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
# Base and head of a screening are one kernel with one spec; the rows of a doctor's night differ.
_NIGHT = """
SELECT c.id, c.status, c.reason, c.created_at, c.ended_at, c.answer, p.spec,
  c.boots * CASE WHEN c.purpose = 'doctor' THEN (SELECT count(*) FROM comparison_arm a
    WHERE a.comparison = c.id) ELSE 1 END AS boots,
  (SELECT count(*) FROM boot b WHERE b.testbox = p.testbox AND b.series = 'c' || c.id) AS done
FROM comparison c JOIN comparison_part p ON p.comparison = c.id
WHERE c.kind = 'anchor' AND c.purpose = :purpose AND p.testbox = :name ORDER BY c.id DESC LIMIT 1
"""
# Metrics that repeat the number of another: in the latest comparison that has them (the last 20
# comparisons of each testbox are read), otherwise in the noise record, which has all boots.
_ALIASES = """
WITH part AS (
  SELECT p.comparison, p.testbox,
    dense_rank() OVER (PARTITION BY p.testbox ORDER BY p.comparison DESC) AS age
  FROM comparison_part p JOIN comparison c ON c.id = p.comparison
  WHERE c.status = 'done' AND (CAST(:name AS text) IS NULL OR p.testbox = :name)
), latest AS (
  SELECT DISTINCT ON (r.testbox, r.unit_job, r.metric) r.testbox, r.unit_job, r.metric,
    r.detail->>'alias_of' AS alias_of
  FROM comparison_row r WHERE (r.comparison, r.testbox) IN
    (SELECT comparison, testbox FROM part WHERE age <= 20)
  ORDER BY r.testbox, r.unit_job, r.metric, r.comparison DESC
)
SELECT * FROM latest WHERE alias_of IS NOT NULL
UNION ALL
SELECT n.testbox, n.unit_job, n.metric, n.detail->>'alias_of' FROM noise_record n
WHERE n.detail ? 'alias_of' AND (CAST(:name AS text) IS NULL OR n.testbox = :name)
  AND (n.testbox, n.unit_job, n.metric) NOT IN (SELECT testbox, unit_job, metric FROM latest)
"""


def aliases(conn: sa.Connection, testbox: str | None = None) -> dict[Key, str]:
    """The metric whose number each alias repeats, by the alias's testbox, unit job and metric."""
    return {key_of(row): row["alias_of"] for row in rows(conn, _ALIASES, name=testbox)}


def noise_records(conn: sa.Connection, testbox: str) -> list[Row]:
    """One row per unit job and metric, with the number of boots.

    `run`, `boot`, `boot_mean`, `pair`, `day`, `layout` are {"sd", "df"}; an unknown sd is None.
    `alias_of` names another metric that is the same number; None for most.
    """
    repeated = aliases(conn, testbox)
    return [
        {key: row[key] for key in ("unit_job", "metric", "through", "at")}
        | plain_record(row["detail"])
        | {"alias_of": repeated.get((testbox, row["unit_job"], row["metric"]))}
        for row in rows(conn, _RECORDS, name=testbox)
    ]


def anchors(conn: sa.Connection, testbox: str) -> list[Row]:
    """The last ten anchor boots of the testbox; `reason` is the problem, None if there was none."""
    return [
        row | {"id": shown("comparison", row["id"])} for row in rows(conn, _ANCHORS, name=testbox)
    ]


def night(conn: sa.Connection, testbox: str, purpose: str) -> Row | None:
    """The last night of anchor boots of the testbox (`swingbot testbox screen` or `doctor`), or
    None.

    `done` of its `boots` are over; `answer` is there when all are.
    """
    for row in rows(conn, _NIGHT, name=testbox, purpose=purpose):
        return row | {"id": shown("comparison", row["id"])}
    return None


def anchor_commit(conn: sa.Connection, testbox: str) -> str | None:
    """The commit that an anchor or a night would boot there; None before a tree or request names
    one.
    """
    stored = Anchors(conn)
    kernel = stored.kernel(testbox) or stored.asked_kernel(testbox)
    return None if kernel is None else Variants(conn).get(kernel.variant).commit


def plain_record(detail: Row) -> Row:
    """An unknown value is None, never 0."""
    return {
        key: {**value, "sd": value["sd"] if value["df"] else None}
        if isinstance(value, dict)
        else value
        for key, value in detail.items()
    }
