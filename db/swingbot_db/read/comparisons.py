"""Comparisons: rows, boots of both sides, progress and estimate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from . import estimate, testbox_status
from .facts import facts_differ
from .rows import Row, by_id, rows, shown, where
from .variants import variants

_COMPARISON = """
SELECT c.id, c.kind, c.tree AS tree_id, t.name AS tree, c.change, c.base, c.head, c.first_k,
  c.boots, c.status, c.reason, c.created_at, c.ended_at,
       extract(epoch FROM coalesce(c.ended_at, now()) - c.created_at) AS seconds, i.id AS incident
FROM comparison_pair c JOIN tree t ON t.id = c.tree LEFT JOIN incident i ON i.comparison = c.id
WHERE c.id = :id
"""
PARTS = """
SELECT p.testbox, p.spec, s.unit_jobs, b.facts->>'label' AS label, b.state,
  coalesce((b.facts->>'repeatable')::boolean, false) AS repeatable
FROM comparison_part p JOIN boot_spec s ON s.sha256 = p.spec JOIN testbox b ON b.name = p.testbox
WHERE p.comparison = :id ORDER BY p.testbox, p.spec
"""
_ROWS = """
SELECT r.testbox, r.spec, r.unit_job, r.metric, r.verdict, r.change_pct, r.detail, b.facts->>'label'
  AS label,
       s.id AS swing, s.state AS swing_state, s.bisection, s.source AS swing_source, s.proof,
         s.evidence
FROM comparison_row r JOIN testbox b ON b.name = r.testbox
LEFT JOIN swing s ON (s.comparison, s.testbox, s.unit_job, s.metric) = (r.comparison, r.testbox,
  r.unit_job, r.metric)
WHERE r.comparison = :id
"""
# Boots are shared by image: a side includes boots of an identical kernel for another request.
# The series is '' on a repeatable testbox, else the comparison's own (`service/order/place.py`).
SIDES = """
WITH side AS (
    SELECT c.id, a.arm, CASE WHEN c.kind = 'experiment' OR a.arm > 1 THEN a.name
             WHEN a.arm = 0 THEN 'base' ELSE 'head' END AS side, a.from_block, kb.image_sha256,
           c.first_k, c.purpose, c.boots
    FROM comparison c
    JOIN comparison_arm a ON a.comparison = c.id
    JOIN variant v ON v.id = a.variant
    JOIN kernel_build kb ON kb.build_key = v.build_key
    WHERE c.id = :id AND kb.image_sha256 IS NOT NULL
), of_side AS MATERIALIZED (  -- a few boots, which the planner takes for thousands
    SELECT s.side, s.arm, p.spec AS part, x.*
    FROM side s
    JOIN comparison_part p ON p.comparison = s.id
    LEFT JOIN comparison_arm_spec o ON (o.comparison, o.arm, o.spec) = (s.id, s.arm, p.spec)
    JOIN boot x ON x.image_sha256 = s.image_sha256 AND x.testbox = p.testbox
      AND x.spec = coalesce(o.own, p.spec)
               AND x.series IN ('', 'c' || s.id) AND x.purpose = s.purpose
               AND x.k >= s.first_k + s.from_block AND x.k < s.first_k + s.boots
)
"""
_BOOTS = (
    SIDES + "SELECT side, id, order_id, testbox, spec, k, outcome, reason, seconds, booted_at"
    " FROM of_side ORDER BY testbox, spec, k, side"
)
_FACTS = SIDES + "SELECT side, testbox, spec, k, facts FROM of_side"
_SAMPLES = SIDES + (
    "SELECT x.side, x.id AS boot, x.testbox, x.k, x.booted_at, x.origin, r.unit_job, r.number AS"
    " run, m.metric, s.seq, s.value "
    "FROM of_side x JOIN run r ON r.boot = x.id JOIN sample s ON s.run = r.id "
    "JOIN measured_metric m ON m.id = s.measured "
    "WHERE CAST(:metrics AS text[]) IS NULL OR m.metric LIKE ANY(CAST(:metrics AS text[])) "
    "ORDER BY s.measured, x.arm, x.k, r.number, s.seq"  # numbers: names take most of the time
)
_MEANS = SIDES + (
    ", compared AS MATERIALIZED (SELECT m.id, m.testbox, m.unit_job, m.metric"
    " FROM measured_metric m JOIN (SELECT DISTINCT testbox, unit_job, metric FROM comparison_row"
    " WHERE comparison = :id) r USING (unit_job, metric, testbox)) "
    "SELECT x.side, x.id AS boot, m.testbox, m.unit_job, m.metric, b.mean AS value "
    "FROM of_side x JOIN compared m ON m.testbox = x.testbox "
    "JOIN boot_mean b ON b.measured = m.id AND b.boot = x.id ORDER BY x.k, x.id"
)
_ORDERS = """
SELECT o.id, o.kind, o.testbox, o.k, o.state, o.reason, o.build_key
FROM want w JOIN orders o ON o.id = w.order_id WHERE w.comparison = :id ORDER BY o.id
"""
_LIST = """
SELECT c.id, c.kind, t.name AS tree, c.status, c.reason, c.boots, c.created_at, c.ended_at,
       base.commit AS base, base.subject AS base_subject, head.commit AS head,
         head.subject AS head_subject,
       (SELECT array_agg(DISTINCT p.testbox) FROM comparison_part p
         WHERE p.comparison = c.id) AS testboxes,
       (array_agg(jsonb_build_object('metric', r.metric, 'unit_job', r.unit_job,
           'testbox', r.testbox, 'verdict', r.verdict, 'change_pct', r.change_pct,
           'interval_pct', r.detail->'interval_pct')
         ORDER BY array_position(ARRAY['worse', 'changed', 'better', 'unclear', 'invalid', 'same'],
           r.verdict), abs(r.change_pct) DESC NULLS LAST, r.testbox, r.unit_job)
         FILTER (WHERE r.comparison IS NOT NULL))[1] AS headline,
       count(r.*) FILTER (WHERE r.verdict = 'worse') AS worse,
       count(r.*) FILTER (WHERE r.verdict = 'better') AS better,
       count(r.*) FILTER (WHERE r.verdict = 'changed') AS changed,
       count(r.*) FILTER (WHERE r.verdict = 'same') AS same,
       count(r.*) FILTER (WHERE r.verdict IN ('unclear', 'invalid')) AS unclear
FROM comparison_pair c
JOIN tree t ON t.id = c.tree
JOIN variant base ON base.id = c.base
JOIN variant head ON head.id = c.head
LEFT JOIN comparison_row r ON r.comparison = c.id AND (r.detail->>'headline')::boolean
  AND r.detail->>'alias_of' IS NULL
{where}
GROUP BY c.id, c.kind, c.status, c.reason, c.boots, c.created_at, c.ended_at, t.name, base.commit,
  base.subject, head.commit, head.subject
ORDER BY c.id DESC LIMIT :limit
"""
# sort order: the most interesting first
_VERDICTS = ("worse", "changed", "invalid", "unclear", "better", "same")


def is_counter(detail: Row) -> bool:
    """Counters are explanatory; the benchmark's own metrics are the subject of a comparison."""
    return (
        bool(detail["class"] != "benchmark")
        if detail.get("class")
        else detail["metric"].startswith("perf-stat.")
    )


def comparison(conn: sa.Connection, id: int | str, queue: estimate.LabQueue | None = None) -> Row:
    """Return one comparison (docs/json.md); benchmark metrics before counters, worst first.

    `alias_of` of a row names another metric with the same value; None for most.

    More keys: `facts_differ` (differences between the fact sheets of the two sides, those that
    block a verdict first), `base_variant`, `head_variant`, `parts`, `boot_list`,
    `progress` {builds, builds_total, boots, boots_total, failed}, `waits` (sentences: testboxes
    that its orders wait for, and why) and `eta_seconds` (None when it is over, something waits, or
    nothing comparable was timed). `queue`: the lab's, if the caller has loaded it.
    """
    row = by_id(conn, _COMPARISON, "comparison", id)
    number = row["id"]
    sides = variants(conn, (row["base"], row["head"]))
    base, head = sides[row["base"]], sides[row["head"]]
    boots = [
        boot | {"id": shown("boot", boot["id"]), "order": shown("order", boot.pop("order_id"))}
        for boot in rows(conn, _BOOTS, id=number)
    ]
    parts = rows(conn, PARTS, id=number)
    facts = {
        "id": shown("comparison", number),
        "base": base["commit"],
        "head": head["commit"],
        "base_variant": base,
        "head_variant": head,
        "incident": shown("incident", row["incident"]),
        "parts": parts,
        "facts_differ": facts_differ(rows(conn, _FACTS, id=number), parts),
        "rows": rows_of(conn, number),
        "boot_list": boots,
    }
    row |= facts
    row.pop("tree_id")
    row["orders"] = [
        order | {"id": shown("order", order["id"])} for order in rows(conn, _ORDERS, id=number)
    ]
    row["progress"] = _progress(row, base, head)
    is_open = row["status"] in ("waiting", "running")
    row["waits"] = (
        testbox_status.waits(conn, row["orders"], queue.troubles if queue else {})
        if is_open and row["kind"] != "anchor"
        else []
    )
    row["eta_seconds"] = None
    if is_open and not row["waits"]:
        row["eta_seconds"] = _eta(row, queue or estimate.LabQueue.load(conn))
    return row


def rows_of(conn: sa.Connection, number: int) -> list[Row]:
    """The rows of a comparison, as in `comparison`."""
    documents = []
    for row in rows(conn, _ROWS, id=number):
        more = {
            "label": row["label"],
            "swing": row["swing"],
            "swing_state": row["swing_state"],
            "bisection": shown("bisection", row["bisection"]),
        }
        more |= {
            "swing_source": row["swing_source"],
            "proof": shown("comparison", row["proof"]),
            "evidence": row["evidence"],
            "alias_of": row["detail"].get("alias_of"),
        }
        documents.append(row["detail"] | more | {"counter": is_counter(row["detail"])})
    return sorted(documents, key=_importance)


def _importance(row: Row) -> tuple[Any, ...]:
    change = row.get("change_pct")
    return (
        row["counter"],
        _VERDICTS.index(row["verdict"]),
        -abs(change) if change is not None else 0.0,
        row["testbox"],
        row["unit_job"],
        row["metric"],
    )


def _progress(row: Row, base: Row, head: Row) -> Row:
    """Counts of builds and boots: done and total."""
    builds = {side["build_key"]: side["build"] for side in (base, head)}
    one_image = base["image_sha256"] is not None and base["image_sha256"] == head["image_sha256"]
    total = len(row["parts"]) * row["boots"] * (1 if one_image or len(builds) == 1 else 2)
    failed = sum(1 for order in row["orders"] if order["state"] in ("failed", "cancelled"))
    boots = len({boot["id"] for boot in row["boot_list"]})
    return {
        "builds": sum(1 for state in builds.values() if state),
        "builds_total": len(builds),
        "boots": min(boots, total),
        "boots_total": total,
        "failed": failed,
    }


def _eta(row: Row, queue: estimate.LabQueue) -> float | None:
    if row["orders"]:
        return queue.left(int(order["id"][1:]) for order in row["orders"])
    keys = dict.fromkeys(row[side]["build_key"] for side in ("base_variant", "head_variant"))
    return queue.left_with(
        row["kind"],
        {
            (key, part["testbox"], part["spec"]): row["boots"]
            for key in keys
            for part in row["parts"]
        },
    )


def samples_of_comparison(
    conn: sa.Connection, id: int | str, metrics: list[str] | None = None
) -> list[Row]:
    """Samples of both sides: side, boot, testbox, k, unit_job, run, metric, seq, value.

    `metrics`: only metrics that match one of these LIKE patterns. All of them are tens of thousands
    of rows; `samples` of `read/raw.py` reads them in pages.
    """
    number = by_id(conn, _COMPARISON, "comparison", id)["id"]
    samples = rows(conn, _SAMPLES, id=number, metrics=metrics)
    return [row | {"boot": shown("boot", row["boot"])} for row in samples]


def boot_means_of_comparison(conn: sa.Connection, id: int | str) -> list[Row]:
    """The boots behind each row: side, boot, testbox, unit_job, metric, value (the boot's mean)."""
    number = by_id(conn, _COMPARISON, "comparison", id)["id"]
    means = rows(conn, _MEANS, id=number)
    return [row | {"boot": shown("boot", row["boot"])} for row in means]


def list_comparisons(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50
) -> list[Row]:
    """Newest first. Filters: tree, status, kind, testbox.

    `headline` is the headline row that a reader wants to know first, None if there is none; the
    counts are of headline rows.
    """
    testbox = (filters or {}).get("testbox")
    clause, params = where(
        {k: v for k, v in (filters or {}).items() if k != "testbox"},
        {"tree": "t.name", "status": "c.status", "kind": "c.kind"},
    )
    if testbox:
        clause += (
            (" AND " if clause else "WHERE ") + "EXISTS (SELECT 1 FROM comparison_part p"
            " WHERE p.comparison = c.id AND p.testbox = :testbox)"
        )
        params["testbox"] = testbox
    matches = rows(conn, _LIST.format(where=clause), limit=limit, **params)
    return [
        row | {"id": shown("comparison", row["id"]), "testboxes": row["testboxes"] or []}
        for row in matches
    ]
