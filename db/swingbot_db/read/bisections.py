"""Bisections: the belief in each commit, the boots requested and why, and their results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import fmean, stdev
from typing import Any, Final, cast

import sqlalchemy as sa

from swingbot.core.bisect.tell.explain_text import of_merge
from swingbot.core.bisect.tell.logbook import act_of
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.documents import Bisection, LogEntry
from swingbot.core.model.statuses import (
    RESUMABLE,
    BisectionStatus,
    RequestOrigin,
    search_over,
    words,
)
from swingbot.core.plan.lab_queue import CONFIRMATION_BOOTS, bisection_seconds_left

from . import estimate, testbox_status
from .rows import Filters, Row, asked_for, by_id, first, has_part, piece, rows, shown, where

_BISECTION = """
SELECT b.id, t.name AS tree, b.origin, b.good, b.bad, b.testbox, b.spec, b.series, b.unit_job,
  b.metric, b.terms, b.status, b.conclusion, b.belief, b.reason,
       b.created_at, b.ended_at,
       extract(epoch FROM coalesce(b.ended_at, now()) - b.created_at) AS seconds,
       x.facts->>'label' AS label, s.unit_jobs,
       b.parent, b.merged, (SELECT count(*) FROM bisection_step WHERE bisection = b.id) AS steps
FROM bisection b JOIN tree t ON t.id = b.tree JOIN testbox x ON x.name = b.testbox
  JOIN boot_spec s ON s.sha256 = b.spec
WHERE b.id = :id
"""
_POINTS = """
SELECT p.idx, p.variant, p.skipped, p.weight, p.hint, v.commit, v.subject, v.author, v.build_key,
  kb.status AS build, kb.image_sha256,
       kb.seconds AS build_seconds, kb.errors AS build_errors
FROM bisection_point p JOIN variant v ON v.id = p.variant
  LEFT JOIN kernel_build kb ON kb.build_key = v.build_key
WHERE p.bisection = :id ORDER BY p.idx
"""
_WANTS = """
SELECT w.idx, w.k, w.layout, w.testbox_index, w.phase, w.asked_at, o.boot, o."values", o.skip,
  o.seen_at, x.outcome, x.order_id,
       pending.id AS pending, pending.state AS pending_state
FROM bisection_want w
JOIN bisection b ON b.id = w.bisection
JOIN bisection_point p ON p.bisection = w.bisection AND p.idx = w.idx
JOIN variant v ON v.id = p.variant
LEFT JOIN variant l ON (l.tree, l.commit, l.kconfig, l.compiler, l.layout) = (v.tree, v.commit,
  v.kconfig, v.compiler, w.layout)
LEFT JOIN observation o ON (o.bisection, o.idx, o.k) = (w.bisection, w.idx, w.k)
LEFT JOIN boot x ON x.id = o.boot
LEFT JOIN orders pending ON pending.kind = 'boot' AND pending.build_key = l.build_key
     AND pending.testbox = coalesce(b.terms -> 'testboxes' ->> w.testbox_index, b.testbox)
     AND pending.spec = b.spec AND pending.series = b.series AND pending.purpose = 'search'
       AND pending.k = w.k
WHERE w.bisection = :id ORDER BY w.asked_at, w.idx, w.k
"""
_METRIC = """
SELECT detail->>'unit' AS unit, detail->>'better' AS better FROM comparison_row
WHERE metric = :metric AND unit_job = :unit_job ORDER BY comparison DESC LIMIT 1
"""
_FROM = """
WITH RECURSIVE up AS (SELECT id, parent FROM bisection WHERE id = :id
  UNION ALL SELECT b.id, b.parent FROM up JOIN bisection b ON b.id = up.parent)
SELECT s.comparison, s.change_pct FROM swing s JOIN up ON up.id = s.bisection ORDER BY s.id LIMIT 1
"""
_STEERS = (
    "SELECT act, points, factor, boots, why, who, at FROM bisection_steer WHERE"
    " bisection = :id ORDER BY id"
)
_BRANCHES = "SELECT id, merged FROM bisection WHERE parent = :id ORDER BY id"
_BUILDS = """
SELECT count(*) AS builds FROM want w JOIN orders o ON o.id = w.order_id
  JOIN kernel_build kb ON kb.build_key = o.build_key
WHERE w.bisection = :id AND o.kind = 'build' AND NOT kb.cached
"""
_QUEUED = """
SELECT DISTINCT o.testbox, o.state FROM want w JOIN orders o ON o.id = w.order_id
WHERE w.bisection = :id AND o.state IN ('waiting', 'ready')
"""
_INCIDENT = "SELECT incident FROM incident_bisection WHERE bisection = :id"
FILTERS: Final = Filters(
    {
        "tree": "t.name",
        "status": "b.status",
        "testbox": "b.testbox",
        "test": has_part("b.unit_job"),
        "metric": "b.metric",
        "origin": "b.origin",
        "person": asked_for("bisection", "b.id"),
        "since": "b.created_at",
    },
    {"status": words(BisectionStatus), "origin": words(RequestOrigin)},
)
_LIST = """
SELECT {key},
  b.id, t.name AS tree, b.origin, b.good, b.bad, b.testbox, b.unit_job, b.metric, b.status,
  b.reason, b.created_at, b.ended_at,
       extract(epoch FROM coalesce(b.ended_at, now()) - b.created_at) AS seconds,
       (SELECT count(*) - 1 FROM bisection_point p WHERE p.bisection = b.id) AS commits,
       (SELECT count(DISTINCT o.boot) FROM observation o WHERE o.bisection = b.id) AS boots,
       b.conclusion, b.belief
FROM bisection b JOIN tree t ON t.id = b.tree
{where}
ORDER BY {order} LIMIT :limit
"""


def bisection(
    conn: sa.Connection, id: int | str, queue: estimate.LabQueue | None = None
) -> Bisection:
    """Return one bisection (docs/json.md).

    Once it has ended, the keys of its conclusion take precedence. `queue`: the lab's, if the caller
    has loaded it.
    """
    row = by_id(conn, _BISECTION, "bisection", id)
    number = row["id"]
    belief, conclusion = row.pop("belief") or {}, row.pop("conclusion") or {}
    points = rows(conn, _POINTS, id=number)
    log = [_entry(want, points[want["idx"]]) for want in rows(conn, _WANTS, id=number)]
    _join(points, log, belief, conclusion)
    running = row["status"] == "running"
    document = row | {
        "culprit": None,
        "culprits": [],
        "probability": max(
            (point["probability"] for point in points if point["probability"] is not None),
            default=None,
        ),
        "change_pct": None,
        "interval_pct": None,
        "spread_ratio": None,
        "boots": len({entry["boot"] for entry in log if entry["boot"]}),
        "builds": rows(conn, _BUILDS, id=number)[0]["builds"],
        "candidates": [
            {key: point[key] for key in ("commit", "subject", "probability", "state")}
            for point in points[1:]
        ],
        "p_none": belief.get("p_none"),
        "phase": belief.get("phase") if running else None,
        "why": belief.get("why") if running else None,
        "next": [_asked(points, request) for request in belief.get("next", [])] if running else [],
        "noise": belief.get("noise"),
        "levels": belief.get("levels"),
        "max_boots": belief.get("max_boots"),
    }
    document |= {
        key: value
        for key, value in conclusion.items()
        if key not in ("id", "status", "log", "points")
    }
    document |= {
        "id": shown("bisection", number),
        "status": row["status"],
        "points": points,
        "log": log,
    }
    document |= _context(conn, number, row)
    document |= _steering(conn, number, document)
    document["culprits"] = _shares(document["culprits"])
    document["waits"] = []
    if running:
        queued, troubles = rows(conn, _QUEUED, id=number), queue.troubles if queue else {}
        # Its next boots are of that testbox, also while none is queued.
        queued = [*queued, {"testbox": row["testbox"], "state": "waiting"}]
        document["waits"] = testbox_status.waits(conn, queued, troubles)
        document |= _progress(row, points, log)
        document["eta_seconds"] = document["eta_note"] = None
    if running and not document["waits"]:
        queue = queue or estimate.LabQueue.load(conn)
        document["eta_seconds"] = _eta(document, queue)
        document["eta_note"] = queue.note([(document["testbox"], document["spec"])])
        document["waits"] = queue.waits(_pending(document))
    return cast(Bisection, document)


def _entry(want: Row, point: Row) -> LogEntry:
    """One requested boot of a point, with its result (`values` is None while it is pending)."""
    back = want["seen_at"] is not None
    values = want["values"] if back else None
    return {
        "asked_at": want["asked_at"],
        "seen_at": want["seen_at"],
        "phase": want["phase"],
        "idx": want["idx"],
        "k": want["k"],
        "layout": want["layout"],
        "testbox_index": want["testbox_index"],
        "boot": shown("boot", want["boot"]),
        "order": shown("order", want["order_id"] or want["pending"]),
        "order_state": want["pending_state"],
        "outcome": want["outcome"],
        "values": values,
        "mean": sum(values) / len(values) if values else None,
        "skip": want["skip"],
        "commit": point["commit"],
        "subject": point["subject"],
    }


def _join(points: list[Row], log: list[LogEntry], belief: Row, conclusion: Row) -> None:
    """Add belief, state and boots to each point."""
    believed = {entry["idx"]: entry for entry in belief.get("posterior", [])}
    named = _named(conclusion)
    concluded = {entry["commit"]: entry for entry in conclusion.get("candidates", [])}
    # several culprits were established separately; the posterior over a single culprit halves them
    if conclusion.get("status") == "several":
        for entry in conclusion.get("culprits", []):
            concluded[entry["commit"]] = concluded.get(entry["commit"], {}) | {
                "probability": entry["probability"]
            }
    for point in points:
        point["probability"] = concluded.get(point["commit"], {}).get(
            "probability", believed.get(point["idx"], {}).get("probability")
        )
        point["observations"] = [entry for entry in log if entry["idx"] == point["idx"]]
        point["variant"] = shown("variant", point["variant"])
        point |= _level(
            [entry["mean"] for entry in point["observations"] if entry["mean"] is not None]
        )
        same = concluded.get(point["commit"], believed.get(point["idx"], {})).get("state") == "same"
        point["state"] = named.get(point["commit"]) or (
            "same kernel" if same else _state(point, len(points) - 1)
        )


def _level(means: list[float]) -> Row:
    """Number, mean and spread of the boot means of a point."""
    return {
        "boots": len(means),
        "mean": fmean(means) if means else None,
        "sd": stdev(means) if len(means) > 1 else None,
    }


def _asked(points: list[Row], request: list[int]) -> Row:
    idx, k = request[:2]
    return {"idx": idx, "k": k, "commit": points[idx]["commit"], "subject": points[idx]["subject"]}


def _steering(conn: sa.Connection, number: int, document: Row) -> Row:
    """Input from people, and the searches of merged branches above and below this one."""
    commits = [(point["commit"], point["subject"]) for point in document["points"]]
    steers = [row | {"words": act_of(row, commits)} for row in rows(conn, _STEERS, id=number)]
    branches = [
        _branch(bisection(conn, row["id"]), row["merged"])
        for row in rows(conn, _BRANCHES, id=number)
    ]
    return {
        "steers": steers,
        "resumable": document["status"] in RESUMABLE,
        "parent": shown("bisection", document["parent"]),
        "branches": branches,
        "within": next((branch["culprit"] for branch in branches if branch["culprit"]), None),
    }


def _shares(culprits: list[Row]) -> list[Row]:
    """Add each culprit's share of the total effect, in logs.

    A culprit with the opposite direction has a negative share.
    """
    logs = [
        math.log1p(c["change_pct"] / 100.0) if (c.get("change_pct") or -100.0) > -100.0 else None
        for c in culprits
    ]
    known = [effect for effect in logs if effect is not None]
    total = sum(known)
    if len(culprits) < 2 or len(known) < len(culprits) or abs(total) < 1e-12:
        return culprits
    return [
        culprit | {"share": round(effect / total, 4)}
        for culprit, effect in zip(culprits, known, strict=True)
    ]


def _branch(child: Bisection, merge: str) -> Row:
    """Result of the search of a merged branch, as a sentence and as facts.

    A merge in that branch may have been searched in turn.
    """
    culprit = child["within"] or child["culprit"]
    over = search_over(child["status"], (branch["over"] for branch in child["branches"]))
    return {
        "id": child["id"],
        "merged": merge,
        "status": child["status"],
        "over": over,
        "culprit": culprit if over else None,
        "words": of_merge(
            merge, child["id"], child["status"] if over else "running", culprit, child["reason"]
        ),
    }


def _named(conclusion: Row) -> dict[str, str]:
    """Map commits to `culprit`, or to `suspect` if several could not be separated."""
    word = "suspect" if conclusion.get("status") == "credible_set" else "culprit"
    commits = [
        *(conclusion.get("culprits") or []),
        *(conclusion.get("members") or []),
        *filter(None, [conclusion.get("culprit")]),
    ]
    return {entry["commit"]: word for entry in commits}


def _state(point: Row, last: int) -> str:
    """State of a commit: whether it was measured, and whether that is possible."""
    observations = point["observations"]
    if point["skipped"]:
        return "skipped"
    if any(entry["values"] for entry in observations):
        return {0: "good end", last: "bad end"}.get(point["idx"], "measured")
    if point["build"] == "failed":
        return "does not build"
    if any(entry["skip"] for entry in observations):
        return "cannot be measured"
    return "asked" if observations else "not measured"


def _context(conn: sa.Connection, number: int, row: Row) -> Row:
    """Unit and direction of the metric, the swing behind the bisection, and its incident."""
    metric = first(conn, _METRIC, metric=row["metric"], unit_job=row["unit_job"]) or {}
    swing = first(conn, _FROM, id=number)
    incident = first(conn, _INCIDENT, id=number)
    terms = row["terms"] or {}
    return {
        "unit": terms.get("unit") or metric.get("unit"),
        "better": terms.get("better") or metric.get("better"),
        "swing": swing
        and {
            "comparison": shown("comparison", swing["comparison"]),
            "change_pct": swing["change_pct"],
        },
        "incident": shown("incident", incident["incident"]) if incident else None,
    }


def _progress(row: Row, points: list[Row], log: list[LogEntry]) -> Row:
    """Progress of a running bisection: bits of uncertainty removed, of those at the start."""
    at_start = math.log2(max(2, len(points) - 1))
    weights = [point["probability"] for point in points if point["probability"]]
    doubt = min(at_start, -sum(p * math.log2(p) for p in weights)) if weights else at_start
    confirming = sum(1 for entry in log if entry["phase"] == "confirm" and entry["seen_at"])
    search = (at_start - doubt) / at_start
    return {
        "progress": {
            "fraction": round(0.8 * search + 0.2 * min(1.0, confirming / CONFIRMATION_BOOTS), 3),
            "bits_left": round(doubt, 2),
            "bits_at_start": round(at_start, 2),
        },
    }


def _pending(document: Row) -> Iterator[int]:
    """Orders of its boots whose results it has not seen."""
    return (
        int(entry["order"][1:])
        for entry in document["log"]
        if entry["order"] and not entry["seen_at"]
    )


def _eta(document: Row, queue: estimate.LabQueue) -> float | None:
    """Seconds until a running bisection ends: its open orders, then what it will still request."""
    log = document["log"]
    return bisection_seconds_left(
        in_flight=queue.forecast.left(_pending(document)),
        asked=[(entry["phase"], bool(entry["seen_at"])) for entry in log],
        bits_left=document["progress"]["bits_left"],
        confirming=document["phase"] == "confirm",
        boot=queue.boot_seconds(document["testbox"], document["spec"]),
        build=estimate.build_seconds(queue.conn) or 0.0,
    )


def list_bisections(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50, after: str = ""
) -> ListPiece:
    """Newest first. Filters: tree, status, testbox, test (a part of the unit job), metric,
    origin, person (who asked for it), since. `best` is the top suspect."""
    FILTERS.check(conn, filters)
    filtered = where(filters, FILTERS.columns)
    some = piece(conn, _LIST, (("-b.id", int),), filtered, limit=limit, after=after)
    lines = []
    for row in some:
        conclusion, belief = row.pop("conclusion") or {}, row.pop("belief") or {}
        best = max(
            belief.get("posterior", []), key=lambda entry: entry["probability"], default=None
        )
        more = {
            "culprit": conclusion.get("culprit"),
            "change_pct": conclusion.get("change_pct"),
            "probability": conclusion.get("probability"),
        }
        row["boots"] = conclusion.get("boots", row["boots"])
        if more["probability"] is None and best:
            more["probability"] = best["probability"]
        lines.append(
            row
            | more
            | {
                "id": shown("bisection", row["id"]),
                "phase": belief.get("phase"),
                "why": belief.get("why"),
            }
        )
    return some.with_rows(lines)
