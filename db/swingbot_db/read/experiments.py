"""Experiments: arms, rows, boots, progress and estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from swingbot.core.model.lookup import NotFound

from . import estimate, testbox_status
from .comparisons import PARTS, SIDES, is_counter
from .rows import Row, by_id, first, number, rows, shown, where
from .variants import variants

_EXPERIMENT = """
SELECT c.id, c.kind, t.name AS tree, c.against, c.beside, c.boots, c.looks, c.looks_stated,
       c.status, c.reason,
       c.created_at, c.ended_at,
       extract(epoch FROM coalesce(c.ended_at, now()) - c.created_at) AS seconds
FROM comparison c JOIN tree t ON t.id = c.tree WHERE c.id = :id AND c.kind = 'experiment'
"""
_ARMS = """
SELECT arm, name, variant, axes, settings, from_block FROM comparison_arm WHERE comparison = :id
  ORDER BY arm
"""
_INCIDENTS = """
SELECT v.commit, max(i.id) AS incident FROM incident i JOIN variant v ON v.id = i.culprit
JOIN comparison c ON c.tree = i.tree
WHERE c.id = :id AND v.commit = ANY(:commits) GROUP BY v.commit
"""
_ROWS = """
SELECT r.testbox, r.spec, r.unit_job, r.metric, r.against, r.arm, r.reference, r.detail
FROM comparison_row r
WHERE r.comparison = :id AND (CAST(:metrics AS text[]) IS NULL OR r.metric = ANY(:metrics))
ORDER BY r.against, r.testbox, r.unit_job, r.metric, r.arm
"""
# Judged metrics; before the judgement, metrics of the latest boot of each part.
_METRICS = """
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
GROUP BY r.unit_job, r.metric ORDER BY r.unit_job, r.metric
"""
_MEASURED = SIDES + (
    ", latest AS (SELECT DISTINCT ON (testbox, part) id, testbox FROM of_side WHERE outcome = 'up'"
    " ORDER BY testbox, part, id DESC) "
    "SELECT m.unit_job, m.metric, array_agg(DISTINCT x.testbox ORDER BY x.testbox) AS testboxes "
    "FROM latest x JOIN run r ON r.boot = x.id JOIN sample s ON s.run = r.id "
    "JOIN measured_metric m ON m.id = s.measured "
    "GROUP BY m.unit_job, m.metric ORDER BY m.unit_job, m.metric"
)
_BOOTS = (
    SIDES
    + "SELECT arm, id, order_id, testbox, part AS spec, k, outcome, reason, seconds, booted_at"
    " FROM of_side"
    " ORDER BY testbox, part, k, arm"
)
_SAMPLES = SIDES + (
    "SELECT x.arm, x.id AS boot, x.testbox, x.k, r.unit_job, r.number AS run, m.metric, s.seq,"
    " s.value "
    "FROM of_side x JOIN run r ON r.boot = x.id JOIN sample s ON s.run = r.id "
    "JOIN measured_metric m ON m.id = s.measured "
    "WHERE CAST(:metrics AS text[]) IS NULL OR m.metric LIKE ANY(CAST(:metrics AS text[])) "
    "ORDER BY x.testbox, r.unit_job, m.metric, x.arm, x.k, r.number, s.seq"
)
_ORDERS = """
SELECT o.id, o.kind, o.testbox, o.spec, o.k, o.state, o.reason, o.build_key
FROM want w JOIN orders o ON o.id = w.order_id WHERE w.comparison = :id ORDER BY o.id
"""
_LIST = """
SELECT c.id, t.name AS tree, c.status, c.reason, c.against, c.boots, c.created_at, c.ended_at,
       (SELECT array_agg(a.name ORDER BY a.arm) FROM comparison_arm a
         WHERE a.comparison = c.id) AS arms,
       (SELECT array_agg(DISTINCT p.testbox) FROM comparison_part p
         WHERE p.comparison = c.id) AS testboxes,
       count(r.*) FILTER (WHERE r.verdict = 'worse') AS worse,
       count(r.*) FILTER (WHERE r.verdict = 'better') AS better,
       count(r.*) FILTER (WHERE r.verdict = 'changed') AS changed,
       count(r.*) FILTER (WHERE r.verdict = 'same') AS same,
       count(r.*) FILTER (WHERE r.verdict IN ('unclear', 'invalid')) AS unclear
FROM comparison c
JOIN tree t ON t.id = c.tree
LEFT JOIN comparison_row r ON r.comparison = c.id AND r.against = c.against[1]
  AND (r.detail->>'headline')::boolean
{where}
GROUP BY c.id, t.name
ORDER BY c.id DESC LIMIT :limit
"""
_OPEN = ("waiting", "running")


def experiment(
    conn: sa.Connection,
    id: int | str,
    metrics: Sequence[str] | None = None,
    queue: estimate.LabQueue | None = None,
) -> Row:
    """Return one experiment. Raises NotFound, which says so if the number is a comparison's.

    `arms`: {arm, name, axes, settings, from_block, variant (as in `variants`), state, reason,
    boots (made), up (of these that came up), incident (whose culprit it is)}; `rows`: as those of
    a comparison, with `against`, `arm`, `reference` and `attributed_to`; `boot_list`, `parts`,
    `progress`, `waits`, `eta_seconds` likewise.
    `looks` is how often it is judged, once more with each extension. `metrics` limits the rows.
    `queue`: the lab's, if the caller has loaded it.
    """
    row = _found(conn, id)
    of = row["id"]
    row |= {
        "id": shown("experiment", of),
        "parts": rows(conn, PARTS, id=of),
        "boot_list": [_boot(boot) for boot in rows(conn, _BOOTS, id=of)],
        "orders": [o | {"id": shown("order", o["id"])} for o in rows(conn, _ORDERS, id=of)],
        "rows": [_row(one) for one in rows(conn, _ROWS, id=of, metrics=metrics)],
    }
    row["arms"] = _arms(conn, of, row)
    row["progress"] = _progress(row)
    is_open = row["status"] in _OPEN
    troubles = queue.troubles if queue else {}
    row["waits"] = testbox_status.waits(conn, row["orders"], troubles) if is_open else []
    row["eta_seconds"] = None
    if is_open and not row["waits"]:
        row["eta_seconds"] = _eta(row, queue or estimate.LabQueue.load(conn))
    return row


def samples_of_experiment(
    conn: sa.Connection, id: int | str, metrics: list[str] | None = None
) -> list[Row]:
    """Samples of its arms: arm, boot, testbox, k, unit_job, run, metric, seq, value.

    `metrics`: only metrics that match one of these LIKE patterns.
    """
    of = _found(conn, id)["id"]
    samples = rows(conn, _SAMPLES, id=of, metrics=metrics)
    return [row | {"boot": shown("boot", row["boot"])} for row in samples]


def metrics_of_experiment(conn: sa.Connection, id: int | str) -> list[Row]:
    """The metrics of its rows.

    Keys: unit_job, metric, testboxes, headline, counter, unit, better, alias_of (if all rows are
    aliases of that metric), and against the first reference largest_pct (of significant changes)
    and counts of rows by verdict: worse, better_rows, changed, same, unclear.
    """
    of = _found(conn, id)["id"]
    return [row | {"counter": is_counter(row)} for row in rows(conn, _METRICS, id=of)]


def measured_by_experiment(conn: sa.Connection, id: int | str) -> list[Row]:
    """Metrics of its latest boot on each testbox: unit_job, metric, testboxes."""
    return rows(conn, _MEASURED, id=_found(conn, id)["id"])


def list_experiments(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50
) -> list[Row]:
    """Newest first. Filters: tree, status, testbox.

    Verdicts are counted over headline metrics, against the first reference.
    """
    testbox = (filters or {}).get("testbox")
    clause, params = where(
        {k: v for k, v in (filters or {}).items() if k != "testbox"},
        {"tree": "t.name", "status": "c.status"},
    )
    clause += (" AND " if clause else "WHERE ") + "c.kind = 'experiment'"
    if testbox:
        clause += (
            " AND EXISTS (SELECT 1 FROM comparison_part p"
            " WHERE p.comparison = c.id AND p.testbox = :testbox)"
        )
        params["testbox"] = testbox
    matches = rows(conn, _LIST.format(where=clause), limit=limit, **params)
    return [row | {"id": shown("experiment", row["id"])} for row in matches]


def _found(conn: sa.Connection, id: int | str) -> Row:
    of = number("experiment", id)
    if first(conn, _EXPERIMENT, id=of) is None:
        other = first(conn, "SELECT kind FROM comparison WHERE id = :id", id=of)
        if other is not None:
            raise NotFound(f"experiment e{of} does not exist; c{of} is a comparison")
    return by_id(conn, _EXPERIMENT, "experiment", of)


def _boot(boot: Row) -> Row:
    order = shown("order", boot.pop("order_id"))
    return boot | {"id": shown("boot", boot["id"]), "order": order}


def _row(row: Row) -> Row:
    place = {key: row[key] for key in ("testbox", "spec", "against", "arm", "reference")}
    return {
        "attributed_to": None,
        **row["detail"],
        **place,
        "counter": is_counter(row["detail"]),
    }


def _arms(conn: sa.Connection, of: int, row: Row) -> list[Row]:
    arms = rows(conn, _ARMS, id=of)
    kernels = variants(conn, [arm["variant"] for arm in arms])
    lost = {
        o["build_key"]: o for o in row["orders"] if (o["kind"], o["state"]) == ("build", "failed")
    }
    boots_made = Counter(boot["arm"] for boot in row["boot_list"])
    up = Counter(boot["arm"] for boot in row["boot_list"] if boot["outcome"] == "up")
    commits = [kernel["commit"] for kernel in kernels.values()]
    incidents = {
        found["commit"]: shown("incident", found["incident"])
        for found in rows(conn, _INCIDENTS, id=of, commits=commits)
    }
    described = []
    for arm in arms:
        kernel = kernels[arm["variant"]]
        state, reason = kernel["build"] or "waiting", None
        if state == "failed":
            reason = (kernel["build_errors"] or ["see build.log"])[0]
        elif state == "waiting" and kernel["build_key"] in lost:
            state, reason = "failed", lost[kernel["build_key"]]["reason"]
        elif state == "waiting" and kernel["build_order_state"] == "running":
            state = "building"
        described.append(
            arm
            | {"variant": kernel, "state": state, "reason": reason}
            | {"boots": boots_made[arm["arm"]], "up": up[arm["arm"]]}
            | {"incident": incidents.get(kernel["commit"])}
        )
    return described


def _progress(row: Row) -> Row:
    """Counts of builds and boots: done, total, and those known before."""
    builds = [order for order in row["orders"] if order["kind"] == "build"]
    boots = [order for order in row["orders"] if order["kind"] == "boot"]
    over = ("done", "failed", "cancelled")
    own = {order["id"] for order in row["orders"]}
    keys = {arm["variant"]["build_key"] for arm in row["arms"]}
    known = {arm["variant"]["build_key"] for arm in row["arms"] if arm["variant"]["build"]}
    return {
        "builds": sum(order["state"] in over for order in builds),
        "builds_total": len(builds) if own else len(keys - known),
        "boots": sum(order["state"] in over for order in boots),
        "boots_total": len(boots) or len(row["arms"]) * len(row["parts"]) * row["boots"],
        "failed": sum(order["state"] in ("failed", "cancelled") for order in row["orders"]),
        "builds_known": len(known - {order["build_key"] for order in builds}),
        "boots_known": len({b["id"] for b in row["boot_list"] if b["order"] not in own}),
    }


def _eta(row: Row, queue: estimate.LabQueue) -> float | None:
    if row["orders"]:
        return queue.left(int(order["id"][1:]) for order in row["orders"])
    boots: Counter[tuple[str, str, str]] = Counter()
    for arm in row["arms"]:
        for part in row["parts"]:
            key = arm["variant"]["build_key"], part["testbox"], part["spec"]
            boots[key] += row["boots"]
    return queue.left_with("experiment", boots)
