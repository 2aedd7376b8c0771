"""Trees, variants, testboxes and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model.comparison_row import key_of
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.lookup import NotFound
from swingbot.core.model.statuses import TestboxState, words

from . import testbox_status
from .estimate import LabQueue
from .histories import histories
from .incidents import list_incidents
from .noise import aliases, anchor_commit, anchors, night, noise_records, plain_record
from .patches import patches
from .queue_end import end_of_testbox
from .rows import Filters, Row, SortKey, by_id, piece, rows, shown, where
from .scatter import scatter
from .standing import standing
from .tables import list_tables
from .time_use import time_use
from .under_way import under_way
from .variants import variants

_TREES = """
SELECT {key},
  t.id, t.name, t.url, t.branch, t.base_commit, t.tip_commit, t.testboxes, t.paths, t.kconfig,
  t.compiler, t.trust, t.min_effect_pct, t.state, t.problem, t.polled_at,
       t.created_at,
       (SELECT coalesce(jsonb_agg(j->>'name'), '[]')
         FROM jsonb_array_elements(t.job_files) j) AS jobs,
       (SELECT v.subject FROM variant v WHERE v.tree = t.id
         AND v.commit = t.tip_commit LIMIT 1) AS tip_subject,
       (SELECT v.subject FROM variant v WHERE v.tree = t.id
         AND v.commit = t.base_commit LIMIT 1) AS base_subject
FROM tree t {where} ORDER BY {order} LIMIT :limit
"""
_CHANGES = """
SELECT ch.kind, ch.old_commit, ch.new_commit, ch.seen_at, c.id AS comparison, c.status,
  (SELECT v.subject FROM variant v WHERE (v.tree, v.commit) = (ch.tree, ch.old_commit) LIMIT 1)
    AS old_subject,
  (SELECT v.subject FROM variant v WHERE (v.tree, v.commit) = (ch.tree, ch.new_commit) LIMIT 1)
    AS new_subject
FROM change ch LEFT JOIN comparison c ON c.change = ch.id WHERE ch.tree = :id
  ORDER BY ch.id DESC LIMIT 50
"""
_VARIANT = "SELECT id, tree FROM variant WHERE id = :id"
_TESTBOXES = """
SELECT {key},
  x.name, x.tbox_group, x.facts, x.facts->>'label' AS label, x.state, x.reason, x.updated_at,
       o.id AS order_id, o.k, o.series, a.number AS attempt, v.commit, v.subject,
         l.taken_at AS since,
       (SELECT count(*) FROM orders q WHERE q.testbox = x.name
         AND q.state IN ('waiting', 'ready')) AS queued,
       (SELECT count(*) FROM boot b WHERE b.testbox = x.name) AS boots,
       (SELECT count(*) FROM boot b WHERE b.testbox = x.name AND b.outcome <> 'up') AS boots_not_up,
       (SELECT avg(b.seconds) FROM boot b WHERE b.testbox = x.name) AS boot_seconds
FROM testbox x
LEFT JOIN lease l ON l.testbox = x.name
LEFT JOIN attempt a ON a.id = l.attempt LEFT JOIN orders o ON o.id = a.order_id
  LEFT JOIN variant v ON v.id = o.variant
{where} ORDER BY {order} LIMIT :limit
"""
_LATEST_BOOTS = """
SELECT b.id, b.order_id, b.outcome, b.reason, b.k, b.series, b.seconds, b.booted_at, v.commit,
  v.subject
FROM boot b JOIN orders o ON o.id = b.order_id LEFT JOIN variant v ON v.id = o.variant
WHERE b.testbox = :name ORDER BY b.id DESC LIMIT 30
"""
_METRICS = """
SELECT m.sort_key, m.unit_job, m.metric, m.testbox, c.samples, c.boots,
  (SELECT x.booted_at FROM boot x WHERE x.id = c.latest) AS latest,
  (SELECT n.detail FROM noise_record n
    WHERE (n.testbox, n.unit_job, n.metric) = (m.testbox, m.unit_job, m.metric)) AS noise
FROM (
  SELECT {key}, m.id, m.unit_job, m.metric, m.testbox FROM measured_metric m {where}
  ORDER BY {order} LIMIT :limit
) m CROSS JOIN LATERAL (
  SELECT sum(b.samples) AS samples, count(*) AS boots, max(b.boot) AS latest
  FROM boot_mean b WHERE b.measured = m.id
) c ORDER BY {order}
"""
# the samples of a metric may all be gone
_WITH_SAMPLES = "EXISTS (SELECT 1 FROM boot_mean b WHERE b.measured = m.id)"
_BY_METRIC: SortKey = (
    ("m.metric LIKE 'perf-stat.%'", bool),
    *((f'm.{name} COLLATE "C"', str) for name in ("metric", "unit_job", "testbox")),
)
_BY_TREE: SortKey = (
    ("t.state <> 'watched'", bool),
    ('t.name COLLATE "C"', str),
    ("t.id", int),
)
_BY_TESTBOX: SortKey = (('x.state COLLATE "C"', str), ('x.name COLLATE "C"', str))


TREE_FILTERS: Final = Filters(
    {"name": "t.name", "state": "t.state"}, {"state": ("watched", "removed")}
)
TESTBOX_FILTERS: Final = Filters(
    {"name": "x.name", "state": "x.state", "tbox_group": "x.tbox_group"},
    {"state": words(TestboxState)},
)
METRIC_FILTERS: Final = Filters(
    {"testbox": "m.testbox", "unit_job": "m.unit_job", "metric": "m.metric"}
)


def list_trees(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 100, after: str = ""
) -> ListPiece:
    """Watched trees first. Filters: name, state."""
    TREE_FILTERS.check(conn, filters)
    filtered = where(filters, TREE_FILTERS.columns)
    some = piece(conn, _TREES, _BY_TREE, filtered, limit=limit, after=after)
    return some.with_rows(row | {"id": shown("tree", row["id"])} for row in some)


def tree(conn: sa.Connection, name: str) -> Row:
    """A tree by name or by id (t1), with its latest changes, and tables of kernels.

    `patches` are those of `patches.patches`; `histories` are the histories of its tips.
    """
    clause = "WHERE t.name = :name AND t.state = 'watched' OR 't' || t.id = :name"
    found = piece(conn, _TREES, _BY_TREE, (clause, {"name": name}), limit=1)
    if not found:
        raise NotFound(f"tree {name!r} does not exist; `swingbot tree list` lists all trees")
    row = found[0]
    changes = [
        change | {"comparison": shown("comparison", change["comparison"])}
        for change in rows(conn, _CHANGES, id=row["id"])
    ]
    return row | {
        "id": shown("tree", row["id"]),
        "standing": standing(conn, row["id"]),
        "incidents": list_incidents(conn, {"tree": row["name"], "status": "open"}, 20),
        **under_way(conn, {"tree": row["name"]}),
        "patches": patches(conn, row["id"]),
        "histories": histories(conn, row["id"]),
        "changes": changes,
        "tables": list_tables(conn, {"tree": row["name"]}, 30),
    }


def variant(conn: sa.Connection, id: int | str) -> Row:
    number = by_id(conn, _VARIANT, "variant", id)["id"]
    return variants(conn, [number])[number]


def list_testboxes(
    conn: sa.Connection,
    filters: Mapping[str, Any] | None = None,
    limit: int = 200,
    after: str = "",
    queue: LabQueue | None = None,
) -> ListPiece:
    """Active ones first. Filters: name, state, tbox_group.

    `doing` is the testbox's current work, None if it is free; `now` is `testbox_status.now`.
    """
    TESTBOX_FILTERS.check(conn, filters)
    filtered = where(filters, TESTBOX_FILTERS.columns)
    testboxes = []
    some = piece(conn, _TESTBOXES, _BY_TESTBOX, filtered, limit=limit, after=after)
    for row in some:
        doing = {
            "order": shown("order", row.pop("order_id")),
            **{
                key: row.pop(key)
                for key in ("attempt", "k", "series", "commit", "subject", "since")
            },
        }
        testboxes.append(row | {"doing": doing if doing["order"] else None})
    now = testbox_status.now(conn, [row["name"] for row in testboxes])
    testboxes = [row | {"now": now[row["name"]]} for row in testboxes]
    queue = queue or LabQueue.load(conn)
    return some.with_rows(
        row | {"words": testbox_status.words(row), "queue_end": end_of_testbox(row, queue)}
        for row in testboxes
    )


def testbox(conn: sa.Connection, name: str) -> Row:
    """A testbox: facts, state changes (`events`), `alerts`, last 30 boots, noise and anchors.

    `time_use` is what it did in the last day.
    """
    testboxes = list_testboxes(conn, {"name": name}, 1) if "," not in name else []
    if not testboxes:
        raise NotFound(
            f"testbox {name!r} does not exist; `swingbot list testboxes` lists all testboxes"
        )
    boots = [
        row | {"id": shown("boot", row["id"]), "order": shown("order", row.pop("order_id"))}
        for row in rows(conn, _LATEST_BOOTS, name=name)
    ]
    noise = noise_records(conn, name)
    return testboxes[0] | {
        "latest_boots": boots,
        "noise": noise,
        "scatter": scatter(conn, name, noise),
        "anchors": anchors(conn, name),
        "anchor_commit": anchor_commit(conn, name),
        "night": night(conn, name, "screen"),
        "doctor": night(conn, name, "doctor"),
        "time_use": time_use(conn, name),
        **_history(conn, name),
    }


def _history(conn: sa.Connection, name: str) -> Row:
    return {
        "events": testbox_status.events(conn, name),
        "alerts": testbox_status.alerts(conn, name),
        "left_out": testbox_status.left_out(conn, [name]).get(name, []),
    }


def list_metrics(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 500, after: str = ""
) -> ListPiece:
    """Metrics ever measured, benchmarks before counters. Filters: testbox, unit_job, metric.

    `noise` is the noise record, `noise_pct` the standard deviation of a boot mean in percent; both
    are None before there is a record. `alias_of` names another metric that is the same number.
    `latest` is when the boot with the highest number began.
    """
    METRIC_FILTERS.check(conn, filters)
    clause, params = where(filters, METRIC_FILTERS.columns)
    clause += f"{' AND ' if clause else 'WHERE '}{_WITH_SAMPLES}"
    some = piece(conn, _METRICS, _BY_METRIC, (clause, params), limit=limit, after=after)
    repeated = aliases(conn)
    return some.with_rows(
        row
        | {
            "alias_of": repeated.get(key_of(row)),
            "noise": plain_record(row["noise"]) if row["noise"] else None,
            "noise_pct": _noise_pct(row["noise"]),
        }
        for row in some
    )


def _noise_pct(detail: Row | None) -> float | None:
    return (
        round(100.0 * detail["boot_mean"]["sd"], 4)
        if detail and detail["boot_mean"]["df"]
        else None
    )
