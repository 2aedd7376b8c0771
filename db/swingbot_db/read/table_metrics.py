"""The metrics of a table: its headlines, one of them, and the others in pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model import cursor

from .rows import Row, rows
from .tables import found_table, is_counter

_METRICS: Final = """
SELECT r.unit_job, r.metric, array_agg(DISTINCT r.testbox ORDER BY r.testbox) AS testboxes,
       bool_or(coalesce((r.detail->>'headline')::boolean, false)) AS headline,
       max(r.detail->>'class') AS class, max(r.detail->>'unit') AS unit,
       max(r.detail->>'better') AS better,
       CASE WHEN bool_and(r.detail->>'alias_of' IS NOT NULL) THEN max(r.detail->>'alias_of') END
         AS alias_of,
       max(abs(r.change_pct)) FILTER (WHERE r.verdict IN ('worse', 'better', 'changed'))
         AS largest_pct,
       count(*) FILTER (WHERE r.verdict = 'worse') AS worse,
       count(*) FILTER (WHERE r.verdict = 'better') AS better_rows,
       count(*) FILTER (WHERE r.verdict = 'changed') AS changed,
       count(*) FILTER (WHERE r.verdict = 'same') AS same,
       count(*) FILTER (WHERE r.verdict IN ('unclear', 'invalid')) AS unclear
FROM comparison_row r JOIN comparison c ON c.id = r.comparison AND r.against = c.against[1]
WHERE r.comparison = :id
"""
_GROUPED: Final = " GROUP BY r.unit_job, r.metric"
_NAMED: Final = (
    _METRICS
    + " AND r.metric = :metric AND (:unit_job = '' OR r.unit_job = :unit_job)"
    + _GROUPED
    + " ORDER BY r.unit_job LIMIT 1"
)
_HEADLINES: Final = (
    _METRICS + " AND (r.detail->>'headline')::boolean" + _GROUPED + " ORDER BY r.unit_job, r.metric"
)
_ALIASES: Final = """
SELECT DISTINCT metric FROM comparison_row
WHERE comparison = :id AND detail->>'alias_of' = ANY(:metrics)
"""
# the sort key of `_order`
_OTHERS: Final = f"""
WITH other AS (
  SELECT *, CASE WHEN coalesce(class, '') <> '' THEN class <> 'benchmark'
    ELSE starts_with(metric, 'perf-stat.') END AS explains, -coalesce(largest_pct, 0) AS change
  FROM ({_METRICS}{_GROUPED}) m WHERE NOT headline AND alias_of IS NULL
)
SELECT *, (SELECT count(*) FROM other) AS others FROM other
WHERE CAST(:k0 AS boolean) IS NULL OR (explains, change, metric COLLATE "C", unit_job COLLATE "C")
  > (:k0, :k1, :k2, :k3)
ORDER BY explains, change, metric COLLATE "C", unit_job COLLATE "C" LIMIT :limit
"""
_KEY_TYPES: Final = (bool, float, str, str)
_JUDGED: Final = """
SELECT EXISTS (SELECT 1 FROM comparison_row WHERE comparison = :id) AS judged,
  EXISTS (SELECT 1 FROM comparison_row WHERE comparison = :id AND starts_with(metric, 'perf-stat.'))
    AS perf
"""


def metric_of_table(conn: sa.Connection, id: int | str, metric: str, unit_job: str) -> Row | None:
    """A metric of its rows; `unit_job` '': of the first one that has it. None: there is none.

    Keys: unit_job, metric, testboxes, headline, counter, unit, better, alias_of (if all rows are
    aliases of that metric), and against the first reference largest_pct (of significant changes)
    and counts of rows by verdict: worse, better_rows, changed, same, unclear.
    """
    of = found_table(conn, id)["id"]
    found = rows(conn, _NAMED, id=of, metric=metric, unit_job=unit_job)
    return _metric(found[0]) if found else None


def headline_metrics_of_table(conn: sa.Connection, id: int | str) -> list[Row]:
    """Its headline metrics without aliases, as `metric_of_table`."""
    found = rows(conn, _HEADLINES, id=found_table(conn, id)["id"])
    return [_metric(row) for row in found if not row["alias_of"]]


def with_aliases(conn: sa.Connection, id: int | str, metrics: Sequence[str]) -> list[str]:
    """Names of these metrics of a table, and of those that repeat their numbers."""
    of = found_table(conn, id)["id"]
    aliases = rows(conn, _ALIASES, id=of, metrics=[*metrics])
    return sorted({*metrics, *(row["metric"] for row in aliases)})


def headlines_of_table(conn: sa.Connection, id: int | str) -> list[str]:
    """Names of the headline metrics of a table, and of metrics that repeat their numbers."""
    names = {row["metric"] for row in rows(conn, _HEADLINES, id=found_table(conn, id)["id"])}
    return with_aliases(conn, id, sorted(names))


def other_metrics_of_table(conn: sa.Connection, id: int | str, after: str = "") -> Row:
    """`rows`: a piece of its other metrics after a cursor ('': the first), benchmark metrics, then
    counters by size of change, as `metric_of_table`; `next`: the cursor after it; `count` of all.
    Raises BadCursor.
    """
    key = cursor.decode(after, _KEY_TYPES) if after else [None] * len(_KEY_TYPES)
    given = {f"k{at}": value for at, value in enumerate(key)}
    of = found_table(conn, id)["id"]
    found = rows(conn, _OTHERS, id=of, limit=cursor.PIECE + 1, **given)
    shown = [_metric(row) for row in found[: cursor.PIECE]]
    more = len(found) > len(shown)
    return {
        "rows": shown,
        "next": cursor.encode(_order(shown[-1])) if more else None,
        "count": found[0]["others"] if found else 0,
    }


def judged_in_table(conn: sa.Connection, id: int | str) -> Row:
    """`judged`: it has rows; `perf`: some are of perf stat."""
    return rows(conn, _JUDGED, id=found_table(conn, id)["id"])[0]


def _metric(row: Row) -> Row:
    left_out = ("explains", "change", "others")
    return {key: value for key, value in row.items() if key not in left_out} | {
        "counter": is_counter(row)
    }


def _order(row: Row) -> list[Any]:
    change = -float(row["largest_pct"] or 0.0)
    return [bool(row["counter"]), change, row["metric"], row["unit_job"]]
