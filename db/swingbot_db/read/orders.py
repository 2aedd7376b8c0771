"""Orders with their attempts and dispatches, and their results: kernel builds and boots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model import cursor
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.lookup import NotFound
from swingbot.core.model.statuses import OrderState, words

from .facts import sheet_of
from .rows import Filters, Row, by_id, first, piece, rows, shown, where
from .rows import number as number_of

_ORDER = """
SELECT o.id, o.kind, o.key, o.build_key, o.testbox, o.spec, o.series, o.purpose, o.k, o.state,
  o.reason, o.priority, o.budget, o.created_at, o.ended_at,
       extract(epoch FROM coalesce(o.ended_at, now()) - o.created_at) AS seconds,
       t.name AS tree, v.id AS variant, v.commit, v.subject, v.trust, s.unit_jobs, x.id AS boot,
         testbox.facts->>'label' AS label
FROM orders o JOIN variant v ON v.id = o.variant JOIN tree t ON t.id = v.tree
LEFT JOIN boot_spec s ON s.sha256 = o.spec LEFT JOIN boot x ON x.order_id = o.id
  LEFT JOIN testbox ON testbox.name = o.testbox
WHERE o.id = :id
"""
_ATTEMPTS = (
    "SELECT id, number, state, outcome, late, reason, ingested_at, created_at,"
    " ended_at FROM attempt WHERE order_id = :id ORDER BY number"
)
_DISPATCHES = """
SELECT d.attempt, d.number, d.builder, d.external_id, d.state, d.bb_buildset, d.bb_request,
       d.bb_builder, d.bb_number, d.result, d.created_at, d.placed_at, d.ended_at
FROM dispatch d JOIN attempt a ON a.id = d.attempt WHERE a.order_id = :id ORDER BY d.id
"""
_WANTED_BY = """
SELECT CASE WHEN c.kind = 'experiment' THEN 'experiment'
            WHEN c.id IS NOT NULL THEN 'comparison' ELSE 'bisection' END AS kind,
       coalesce(w.comparison, w.bisection) AS id
FROM want w LEFT JOIN comparison c ON c.id = w.comparison
WHERE w.order_id = :id ORDER BY w.comparison, w.bisection
"""
_BUILD = """
SELECT kb.build_key, kb.status, kb.image_sha256, kb.compiler_version, kb.sizes, kb.errors, kb.files,
  kb.seconds,
       kb.cached, kb.origin, kb.built_at, a.order_id, a.id AS attempt
FROM kernel_build kb JOIN attempt a ON a.id = kb.attempt WHERE kb.build_key = :key
"""
_BOOT = """
SELECT x.id, x.order_id, x.testbox, x.build_key, x.image_sha256, x.spec, x.series, x.purpose, x.k,
  x.outcome, x.reason, x.facts, x.files, x.seconds, x.origin, x.booted_at,
       v.commit, v.subject, v.trust, t.name AS tree, v.id AS variant,
       testbox.facts->>'label' AS label
FROM boot x JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant
  JOIN tree t ON t.id = v.tree JOIN testbox ON testbox.name = x.testbox
WHERE x.id = :id
"""
_CONFIG = (
    "SELECT compiler_version, files -> 'config' ->> 'sha256' AS config_sha256 FROM"
    " kernel_build WHERE build_key = :key"
)
_RUNS = (
    "SELECT id, unit_job, number, status, reason, seconds FROM run WHERE boot = :id ORDER"
    " BY unit_job, number"
)
_SAMPLES = (
    "SELECT s.run, m.metric, s.seq, s.value FROM sample s JOIN run r ON r.id = s.run"
    " JOIN measured_metric m ON m.id = s.measured"
    " WHERE r.boot = :id ORDER BY s.run, s.measured, s.seq"
)
# in the order of the primary key, so that a piece reads no more than its rows
_PIECE_OF_SAMPLES = """
SELECT s.run, s.measured, s.seq, s.value, (SELECT metric FROM measured_metric WHERE id = s.measured)
  AS metric
FROM sample s WHERE s.run = ANY(:runs) AND (s.run, s.measured, s.seq) > (:run, :measured, :seq)
ORDER BY s.run, s.measured, s.seq LIMIT :limit
"""
_METRICS_OF_BOOT = """
SELECT DISTINCT r.unit_job, m.metric FROM boot x JOIN run r ON r.boot = x.id
JOIN measured_metric m ON (m.testbox, m.unit_job) = (x.testbox, r.unit_job)
WHERE x.id = :id AND EXISTS (SELECT 1 FROM sample s WHERE (s.run, s.measured) = (r.id, m.id))
ORDER BY r.unit_job, m.metric
"""
_FIRST_OF_BOOT = """
SELECT r.unit_job, r.number, m.metric, s.value FROM boot x JOIN run r ON r.boot = x.id
JOIN measured_metric m ON (m.testbox, m.unit_job) = (x.testbox, r.unit_job)
JOIN sample s ON (s.run, s.measured) = (r.id, m.id)
WHERE x.id = :id AND m.metric = ANY(:metrics) AND s.seq < :each
ORDER BY r.unit_job, r.number, m.metric, s.seq LIMIT :most
"""
_VARIANTS_OF_KEY = """
SELECT v.id, v.commit, v.subject, t.name AS tree, v.kconfig, v.compiler, v.layout, v.trust
FROM variant v JOIN tree t ON t.id = v.tree WHERE v.build_key = :key ORDER BY v.id
"""
_BOOTS_OF_IMAGE = (
    "SELECT id, testbox, series, k, outcome, seconds, booted_at FROM boot WHERE"
    " image_sha256 = :image ORDER BY id DESC LIMIT 200"
)
_SAME_IMAGE = (
    "SELECT build_key FROM kernel_build WHERE image_sha256 = :image AND build_key"
    " <> :key ORDER BY build_key LIMIT 20"
)
_LIST = """
SELECT {key}, o.id, o.kind, o.testbox, o.k, o.series, o.state, o.reason, o.priority, o.created_at,
  o.ended_at, t.name AS tree, v.commit, v.subject,
       (SELECT count(*) FROM attempt a WHERE a.order_id = o.id) AS attempts
FROM orders o JOIN variant v ON v.id = o.variant JOIN tree t ON t.id = v.tree
{where} ORDER BY {order} LIMIT :limit
"""


def order(conn: sa.Connection, id: int | str) -> Row:
    """Return an order: `attempts` (each with outcome and `dispatches`), `wanted_by`, and
    `kernel_build` or `boot` if there is one."""
    row = by_id(conn, _ORDER, "order", id)
    number = row["id"]
    dispatches = rows(conn, _DISPATCHES, id=number)
    attempts = []
    for attempt in rows(conn, _ATTEMPTS, id=number):
        own = [dispatch for dispatch in dispatches if dispatch["attempt"] == attempt["id"]]
        attempts.append(
            attempt
            | {
                "id": shown("attempt", attempt["id"]),
                "dispatches": own,
                "files": (attempt["outcome"] or {}).get("files") or {},
            }
        )
    for dispatch in dispatches:
        dispatch["attempt"] = shown("attempt", dispatch["attempt"])
    requests = [shown(want["kind"], want["id"]) for want in rows(conn, _WANTED_BY, id=number)]
    build = _build(conn, row["build_key"]) if row["kind"] == "build" else None
    ids = {
        "id": shown("order", number),
        "variant": shown("variant", row["variant"]),
        "boot": shown("boot", row["boot"]),
    }
    return row | ids | {"attempts": attempts, "wanted_by": requests, "kernel_build": build}


def _build(conn: sa.Connection, key: str) -> Row | None:
    build = first(conn, _BUILD, key=key)
    return build and build | {
        "order": shown("order", build.pop("order_id")),
        "attempt": shown("attempt", build["attempt"]),
    }


def kernel(conn: sa.Connection, key: str) -> Row:
    """A kernel build by key: its variants, its boots, and builds that produced the same image."""
    build = _build(conn, key)
    if build is None:
        raise _no_build(conn, key)
    image = build["image_sha256"]
    build["variants"] = [
        row | {"id": shown("variant", row["id"])} for row in rows(conn, _VARIANTS_OF_KEY, key=key)
    ]
    build["boots"] = (
        [row | {"id": shown("boot", row["id"])} for row in rows(conn, _BOOTS_OF_IMAGE, image=image)]
        if image
        else []
    )
    build["same_image"] = (
        [row["build_key"] for row in rows(conn, _SAME_IMAGE, image=image, key=key)] if image else []
    )
    return build


def _no_build(conn: sa.Connection, key: str) -> NotFound:
    waiting = first(conn, "SELECT id, state FROM orders WHERE key = 'build:' || :key", key=key)
    if waiting:
        return NotFound(
            f"this kernel is not built yet: order {shown('order', waiting['id'])} is"
            f" {waiting['state']}"
        )
    return NotFound(
        "this kernel build does not exist; a key has 64 hex digits, as shown by an order or a boot"
    )


def boot(
    conn: sa.Connection, id: int | str, *, samples: bool = True, after: str | None = None
) -> Row:
    """Return a boot.

    `runs` have `samples` {metric: [values]}, which are empty without `samples`; `facts` are as
    received; `sheet` is the whole fact sheet by group. `after`: the samples in pieces, the one that
    follows this cursor ('': the first); None: all. Raises BadCursor.
    """
    row = by_id(conn, _BOOT, "boot", id)
    number = row["id"]
    values: dict[int, dict[str, list[float]]] = {}
    runs = rows(conn, _RUNS, id=number)
    row["next"] = None
    if not samples:
        found = []
    elif after is None:
        found = rows(conn, _SAMPLES, id=number)
    else:
        found, row["next"] = _piece_of_samples(conn, [run["id"] for run in runs], after)
    for sample in found:
        values.setdefault(sample["run"], {}).setdefault(sample["metric"], []).append(
            sample["value"]
        )
    runs = [run | {"samples": values.get(run.pop("id"), {})} for run in runs]
    ids = {
        "id": shown("boot", number),
        "order": shown("order", row.pop("order_id")),
        "variant": shown("variant", row["variant"]),
    }
    return (
        row
        | ids
        | {
            "runs": runs,
            "sheet": sheet_of(row["facts"], first(conn, _CONFIG, key=row["build_key"])),
        }
    )


def _piece_of_samples(
    conn: sa.Connection, runs: list[int], after: str
) -> tuple[list[Row], str | None]:
    key = ("run", "measured", "seq")
    begin = cursor.decode(after, (int, int, int)) if after else (0, 0, -1)
    place = dict(zip(key, begin, strict=True))
    found = rows(conn, _PIECE_OF_SAMPLES, runs=runs, limit=cursor.PIECE + 1, **place)
    some = found[: cursor.PIECE]
    more = len(found) > len(some)
    return some, cursor.encode([some[-1][name] for name in key]) if more else None


def metrics_of_boot(conn: sa.Connection, id: int | str) -> list[Row]:
    """The metrics that its runs have samples of: unit_job, metric."""
    return rows(conn, _METRICS_OF_BOOT, id=number_of("boot", id))


def first_samples_of_boot(
    conn: sa.Connection, id: int | str, metrics: list[str], *, each: int, most: int
) -> list[Row]:
    """The first samples of each run, `each` of a metric and `most` in all: unit_job, number (of the
    run), metric, value.
    """
    more = {"metrics": metrics, "each": each, "most": most}
    return rows(conn, _FIRST_OF_BOOT, id=number_of("boot", id), **more)


FILTERS: Final = Filters(
    {
        "kind": "o.kind",
        "state": "o.state",
        "testbox": "o.testbox",
        "tree": "t.name",
        "series": "o.series",
        "since": "o.created_at",
    },
    {"kind": ("build", "boot"), "state": words(OrderState)},
)


def list_orders(
    conn: sa.Connection,
    filters: Mapping[str, Any] | None = None,
    limit: int = 100,
    after: str = "",
) -> ListPiece:
    """Newest first. Filters: kind, state, testbox, tree, series, since."""
    FILTERS.check(conn, filters)
    filtered = where(filters, FILTERS.columns)
    some = piece(conn, _LIST, (("-o.id", int),), filtered, limit=limit, after=after)
    return some.with_rows(row | {"id": shown("order", row["id"])} for row in some)
