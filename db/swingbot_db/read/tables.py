"""Tables of kernels (comparisons and experiments): arms, rows, boots, progress and estimate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import sqlalchemy as sa

from swingbot.core.model import cursor, ids
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.documents import Progress, SwingEvidence, Table
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.statuses import ComparisonKind, ComparisonStatus, words
from swingbot.core.table.references import references

from . import estimate, testbox_status
from .facts import facts_differ
from .rows import (
    VALUES,
    Filters,
    Row,
    asked_for,
    first,
    has_part,
    number,
    piece,
    rows,
    shown,
    where,
)
from .variants import variants

# People who asked for a table `c` with a token, in order.
_ASKED_BY: Final = (
    "ARRAY(SELECT q.who FROM asked q WHERE q.comparison = c.id ORDER BY q.at, q.who) AS asked_by"
)
_TABLE = f"""
SELECT c.id, c.kind, t.name AS tree, c.change, c.against, c.columns, c.first_k, c.boots,
       c.looks, c.looks_stated, coalesce(c.min_effect_pct, t.min_effect_pct) AS min_effect_pct,
       c.unjudged, c.status, c.reason, c.private_to, c.created_at, c.ended_at,
       extract(epoch FROM coalesce(c.ended_at, now()) - c.created_at) AS seconds,
       {_ASKED_BY},
       (SELECT max(i.id) FROM incident i WHERE i.comparison = c.id) AS incident
FROM comparison c JOIN tree t ON t.id = c.tree WHERE c.id = :id
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
_PARTS = """
SELECT p.testbox, p.spec, s.unit_jobs, b.facts->>'label' AS label, b.state,
  coalesce((b.facts->>'repeatable')::boolean, false) AS repeatable
FROM comparison_part p JOIN boot_spec s ON s.sha256 = p.spec JOIN testbox b ON b.name = p.testbox
WHERE p.comparison = :id ORDER BY p.testbox, p.spec
"""
# the most interesting first
_VERDICTS: Final = ("worse", "changed", "invalid", "unclear", "better", "same")
_IMPORTANCE: Final = (
    "CASE WHEN coalesce(r.detail->>'class', '') <> '' THEN r.detail->>'class' <> 'benchmark'"
    " ELSE starts_with(r.metric, 'perf-stat.') END",
    f"array_position(ARRAY{list(_VERDICTS)}, r.verdict)",
    "-abs(coalesce(r.change_pct, 0))",
    *(f'r.{name} COLLATE "C"' for name in ("testbox", "unit_job", "metric", "against")),
    "r.arm",
)
_KEY_TYPES: Final = (bool, int, float, str, str, str, str, int)
_ROWS = f"""
SELECT r.testbox, r.spec, r.unit_job, r.metric, r.against, r.arm, r.reference, r.detail,
       b.facts->>'label' AS label, s.id AS swing, s.state AS swing_state, s.bisection,
       s.source AS swing_source, s.proof, s.evidence
FROM comparison_row r JOIN testbox b ON b.name = r.testbox
LEFT JOIN swing s ON (s.comparison, s.testbox, s.unit_job, s.metric) = (r.comparison, r.testbox,
  r.unit_job, r.metric)
WHERE r.comparison = :id AND (CAST(:metrics AS text[]) IS NULL OR r.metric = ANY(:metrics))
  AND (CAST(:k0 AS boolean) IS NULL
    OR ({", ".join(_IMPORTANCE)}) > (:k0, :k1, :k2, :k3, :k4, :k5, :k6, :k7))
ORDER BY {", ".join(_IMPORTANCE)} LIMIT :limit
"""
# Boots are shared by image: an arm includes boots of an identical kernel for another request.
# The series is '' on a repeatable testbox, else the table's own (`service/order/place.py`).
_BOOTS_OF = """
WITH of_table AS (
    SELECT c.id, a.arm, a.from_block, kb.image_sha256, c.first_k, c.purpose, c.boots
    FROM comparison c
    JOIN comparison_arm a ON a.comparison = c.id
    JOIN variant v ON v.id = a.variant
    JOIN kernel_build kb ON kb.build_key = v.build_key
    WHERE c.id = :id AND kb.image_sha256 IS NOT NULL
), of_arm AS MATERIALIZED (  -- a few boots, which the planner takes for thousands
    SELECT a.arm, p.spec AS part, x.*
    FROM of_table a
    JOIN comparison_part p ON p.comparison = a.id
    LEFT JOIN comparison_arm_spec o ON (o.comparison, o.arm, o.spec) = (a.id, a.arm, p.spec)
    JOIN boot x ON x.image_sha256 = a.image_sha256 AND x.testbox = p.testbox
      AND x.spec = coalesce(o.own, p.spec)
               AND x.series IN ('', 'c' || a.id) AND x.purpose = a.purpose
               AND x.k >= a.first_k + a.from_block AND x.k < a.first_k + a.boots
)
"""
_BOOTS = (
    _BOOTS_OF
    + "SELECT arm, id, order_id, testbox, part AS spec, k, outcome, reason, seconds, booted_at"
    " FROM of_arm ORDER BY testbox, part, k, arm"
)
_FACTS = _BOOTS_OF + "SELECT arm, testbox, part AS spec, k, facts FROM of_arm"
_SAMPLES = _BOOTS_OF + (
    "SELECT x.arm, x.id AS boot, x.testbox, x.k, x.booted_at, x.origin, r.unit_job, r.number AS"
    " run, m.metric, s.seq, s.value "
    "FROM of_arm x JOIN run r ON r.boot = x.id JOIN sample s ON s.run = r.id "
    "JOIN measured_metric m ON m.id = s.measured "
    "WHERE CAST(:metrics AS text[]) IS NULL OR m.metric LIKE ANY(CAST(:metrics AS text[])) "
    "ORDER BY s.measured, x.arm, x.k, r.number, s.seq"  # numbers: names take most of the time
)
_MEANS = _BOOTS_OF + (
    ", compared AS MATERIALIZED (SELECT m.id, m.testbox, m.unit_job, m.metric"
    " FROM measured_metric m JOIN (SELECT DISTINCT testbox, unit_job, metric FROM comparison_row"
    " WHERE comparison = :id) r USING (unit_job, metric, testbox)) "
    "SELECT x.arm, x.id AS boot, m.testbox, m.unit_job, m.metric, b.mean AS value "
    "FROM of_arm x JOIN compared m ON m.testbox = x.testbox "
    "JOIN boot_mean b ON b.measured = m.id AND b.boot = x.id ORDER BY x.k, x.id"
)
_ORDERS = """
SELECT o.id, o.kind, o.testbox, o.spec, o.k, o.state, o.reason, o.build_key
FROM want w JOIN orders o ON o.id = w.order_id WHERE w.comparison = :id ORDER BY o.id
"""
_ROWS_BY_METRIC = f"""
SELECT r.metric, count(*) AS rows FROM comparison_row r WHERE r.comparison = :id
GROUP BY r.metric
ORDER BY bool_and({_IMPORTANCE[0]}), min({_IMPORTANCE[1]}), min({_IMPORTANCE[2]}), r.metric
"""
_MEASURED = _BOOTS_OF + (
    ", latest AS (SELECT DISTINCT ON (testbox, part) id, testbox FROM of_arm WHERE outcome = 'up'"
    " ORDER BY testbox, part, id DESC) "
    "SELECT m.unit_job, m.metric, array_agg(DISTINCT x.testbox ORDER BY x.testbox) AS testboxes "
    "FROM latest x JOIN run r ON r.boot = x.id JOIN sample s ON s.run = r.id "
    "JOIN measured_metric m ON m.id = s.measured "
    "GROUP BY m.unit_job, m.metric ORDER BY m.unit_job, m.metric"
)
# Of rows `r`, the one that a reader wants to know first.
HEADLINE: Final = """
(array_agg(jsonb_build_object('metric', r.metric, 'unit_job', r.unit_job,
    'testbox', r.testbox, 'arm', r.arm, 'verdict', r.verdict, 'change_pct', r.change_pct,
    'interval_pct', r.detail->'interval_pct', 'margin_pct', r.detail->'margin_pct',
    'more_boots', r.detail->'more_boots', 'better', r.detail->'better')
  ORDER BY array_position(ARRAY['worse', 'changed', 'better', 'unclear', 'invalid', 'same'],
    r.verdict), abs(r.change_pct) DESC NULLS LAST, r.testbox, r.unit_job)
  FILTER (WHERE r.comparison IS NOT NULL))[1]
"""
_LIST = f"""
SELECT {{key}}, c.id, c.kind, t.name AS tree, c.status, c.reason, c.against, c.boots, c.created_at,
       c.ended_at, {_ASKED_BY},
       (SELECT jsonb_agg(jsonb_build_object('name', a.name, 'commit', v.commit,
           'subject', v.subject) ORDER BY a.arm)
         FROM comparison_arm a JOIN variant v ON v.id = a.variant
         WHERE a.comparison = c.id) AS arms,
       (SELECT array_agg(DISTINCT p.testbox) FROM comparison_part p
         WHERE p.comparison = c.id) AS testboxes,
       {HEADLINE} AS headline,
       count(r.*) FILTER (WHERE r.verdict = 'worse') AS worse,
       count(r.*) FILTER (WHERE r.verdict = 'better') AS better,
       count(r.*) FILTER (WHERE r.verdict = 'changed') AS changed,
       count(r.*) FILTER (WHERE r.verdict = 'same') AS same,
       count(r.*) FILTER (WHERE r.verdict IN ('unclear', 'invalid')) AS unclear
FROM comparison c
JOIN tree t ON t.id = c.tree
LEFT JOIN comparison_row r ON r.comparison = c.id AND r.against = c.against[1]
  AND (r.detail->>'headline')::boolean AND r.detail->>'alias_of' IS NULL
{{where}}
GROUP BY c.id, t.name
ORDER BY {{order}} LIMIT :limit
"""
_OPEN: Final = ("waiting", "running")


def table(
    conn: sa.Connection,
    id: int | str,
    metrics: Sequence[str] | None = None,
    queue: estimate.LabQueue | None = None,
    after: str | None = None,
) -> Table:
    """Return one table (docs/json.md), named by `c5`, `e6` or a bare number.

    `metrics` limits the rows. `queue`: the lab's, if the caller has loaded it. `after`: the rows in
    pieces, the one that follows this cursor ('': the first); None: all.
    Raises NotFound, which names the right address if the letter is wrong; BadCursor for a string
    that is not a cursor.
    """
    row = found_table(conn, id)
    of = row["id"]
    found, row["next"] = _piece(conn, of, metrics, after)
    row |= {
        "id": ids.of_table(row["kind"], of),
        "incident": shown("incident", row["incident"]),
        "parts": rows(conn, _PARTS, id=of),
        "boot_list": [_boot(boot) for boot in rows(conn, _BOOTS, id=of)],
        "orders": [o | {"id": shown("order", o["id"])} for o in rows(conn, _ORDERS, id=of)],
        "rows": found,
    }
    row["arms"] = _arms(conn, of, row)
    row["facts_differ"] = facts_differ(
        rows(conn, _FACTS, id=of), row["parts"], row["arms"], _pairs(row)
    )
    row["progress"] = _progress(row)
    is_open = row["status"] in _OPEN
    # an anchor waits for an idle testbox by design
    blocked = is_open and row["kind"] != "anchor"
    troubles = queue.troubles if queue else {}
    row["waits"] = testbox_status.waits(conn, row["orders"], troubles) if blocked else []
    row["eta_seconds"] = row["eta_note"] = None
    if is_open and not row["waits"]:
        queue = queue or estimate.LabQueue.load(conn)
        row["eta_seconds"] = _eta(row, queue)
        row["eta_note"] = queue.note((part["testbox"], part["spec"]) for part in row["parts"])
        row["waits"] = queue.waits(_orders(row))
    return cast(Table, row)


def found_table(conn: sa.Connection, id: int | str) -> Row:
    kind = "experiment" if isinstance(id, str) and id.startswith("e") else "comparison"
    of = number(kind, id)
    row = first(conn, _TABLE, id=of)
    if row is None:
        raise NotFound(missing(kind, of))
    named, right = ids.show(kind, of), ids.of_table(row["kind"], of)
    if not isinstance(id, int) and id == named != right:
        raise NotFound(f"{kind} {named} does not exist, but {right} does")
    return row


def _boot(boot: Row) -> Row:
    order = shown("order", boot.pop("order_id"))
    return boot | {"id": shown("boot", boot["id"]), "order": order}


def rows_of(conn: sa.Connection, number: int, metrics: Sequence[str] | None = None) -> list[Row]:
    """The rows of a table: benchmark metrics before counters, worst first."""
    return _piece(conn, number, metrics, None)[0]


def _piece(
    conn: sa.Connection, number: int, metrics: Sequence[str] | None, after: str | None
) -> tuple[list[Row], str | None]:
    """Rows after a cursor, and the cursor of the last one (None: no row follows)."""
    key = cursor.decode(after, _KEY_TYPES) if after else [None] * len(_KEY_TYPES)
    given = {f"k{at}": value for at, value in enumerate(key)}
    limit = None if after is None else cursor.PIECE + 1
    found = rows(conn, _ROWS, id=number, metrics=metrics, limit=limit, **given)
    documents = [_row(row) for row in found]
    if limit is None or len(documents) < limit:
        return documents, None
    del documents[cursor.PIECE :]
    return documents, cursor.encode(_importance(documents[-1]))


def _row(row: Row) -> Row:
    detail = row.pop("detail")
    row["bisection"] = shown("bisection", row["bisection"])
    row["proof"] = shown("comparison", row["proof"])
    if (evidence := row["evidence"]) is not None:  # a new swing has its alarm alone
        row["evidence"] = {key: evidence.get(key) for key in SwingEvidence.__annotations__}
    facts = {"attributed_to": None, "alias_of": None, **detail, **row}
    return facts | {"counter": is_counter(detail)}


def is_counter(detail: Row) -> bool:
    """Counters are explanatory; the benchmark's own metrics are the subject of a table."""
    return (
        bool(detail["class"] != "benchmark")
        if detail.get("class")
        else detail["metric"].startswith("perf-stat.")
    )


def _importance(row: Row) -> tuple[Any, ...]:
    change = row.get("change_pct")
    return (
        row["counter"],
        1 + _VERDICTS.index(row["verdict"]),
        -abs(float(change)) if change is not None else 0.0,
        row["testbox"],
        row["unit_job"],
        row["metric"],
        row["against"],
        row["arm"],
    )


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


def _pairs(row: Row) -> list[tuple[int, int]]:
    """Return (reference, arm) of each arm that is compared, by the first rule."""
    names = [arm["name"] for arm in row["arms"]]
    return references(row["against"][0], [arm["axes"] for arm in row["arms"]], names=names)


def _progress(row: Row) -> Progress:
    """Counts of builds and boots: done, total, and of those done the ones that existed before."""
    built = {arm["variant"]["build_key"]: arm["variant"]["build"] for arm in row["arms"]}
    total = sum(_boots_of_kernels(row).values()) * len(row["parts"])
    boots = {boot["id"]: boot["order"] for boot in row["boot_list"]}
    own = {order["id"] for order in row["orders"]}
    ordered = {order["build_key"] for order in row["orders"] if order["kind"] == "build"}
    return {
        "builds": sum(1 for state in built.values() if state),
        "builds_total": len(built),
        "boots": min(len(boots), total),
        "boots_total": total,
        "failed": sum(order["state"] in ("failed", "cancelled") for order in row["orders"]),
        "builds_known": sum(1 for key, state in built.items() if state and key not in ordered),
        "boots_known": sum(1 for order in boots.values() if order not in own),
    }


def _boots_of_kernels(row: Row) -> dict[tuple[str, str], int]:
    """Map each kernel, as (build key or image, settings), to its boots on one testbox."""
    boots: dict[tuple[str, str], int] = {}
    for arm in row["arms"]:
        kernel = arm["variant"]
        key = kernel["image_sha256"] or kernel["build_key"], str(arm["settings"])
        boots[key] = max(boots.get(key, 0), row["boots"] - arm["from_block"])
    return boots


def _orders(row: Row) -> Iterator[int]:
    return (int(order["id"][1:]) for order in row["orders"])


def _eta(row: Row, queue: estimate.LabQueue) -> float | None:
    if row["orders"]:
        return queue.forecast.left(_orders(row))
    keys = {
        arm["variant"]["image_sha256"]: arm["variant"]["build_key"]
        for arm in row["arms"]
        if arm["variant"]["image_sha256"]
    }
    boots: Counter[tuple[str, str, str]] = Counter()
    for (kernel, _), count in _boots_of_kernels(row).items():
        for part in row["parts"]:
            boots[keys.get(kernel, kernel), part["testbox"], part["spec"]] += count
    return queue.left_with(row["kind"], boots)


def samples_of_table(
    conn: sa.Connection, id: int | str, metrics: list[str] | None = None
) -> list[Row]:
    """Samples of its arms: arm, boot, testbox, k, unit_job, run, metric, seq, value.

    `metrics`: only metrics that match one of these LIKE patterns. All of them are tens of thousands
    of rows; `samples` of `read/raw.py` reads them in pages.
    """
    samples = rows(conn, _SAMPLES, id=found_table(conn, id)["id"], metrics=metrics)
    return [row | {"boot": shown("boot", row["boot"])} for row in samples]


def boot_means_of_table(conn: sa.Connection, id: int | str) -> list[Row]:
    """The boots behind each row: arm, boot, testbox, unit_job, metric, value (the boot's mean)."""
    means = rows(conn, _MEANS, id=found_table(conn, id)["id"])
    return [row | {"boot": shown("boot", row["boot"])} for row in means]


def metric_pieces(conn: sa.Connection, id: int | str) -> list[list[str]]:
    """Names of the metrics of a table, the most important first, so many of them that their rows
    are a piece.
    """
    found = rows(conn, _ROWS_BY_METRIC, id=found_table(conn, id)["id"])
    pieces: list[list[str]] = []
    size = cursor.PIECE
    for row in found:
        if size + row["rows"] > cursor.PIECE:
            pieces.append([])
            size = 0
        pieces[-1].append(row["metric"])
        size += row["rows"]
    return pieces


def measured_in_table(conn: sa.Connection, id: int | str) -> list[Row]:
    """Metrics of its latest boot on each testbox: unit_job, metric, testboxes."""
    return rows(conn, _MEASURED, id=found_table(conn, id)["id"])


FILTERS: Final = Filters(
    {
        "tree": "t.name",
        "status": "c.status",
        "kind": "c.kind",
        "testbox": "EXISTS (SELECT FROM comparison_part p WHERE p.comparison = c.id"
        f" AND p.testbox = ANY({VALUES}))",
        "test": "EXISTS (SELECT FROM comparison_part p JOIN boot_spec s ON s.sha256 = p.spec"
        " CROSS JOIN jsonb_array_elements(s.unit_jobs) j WHERE p.comparison = c.id"
        f""" AND {has_part("j ->> 'name'")})""",
        "person": asked_for("comparison", "c.id"),
        "since": "c.created_at",
    },
    {"status": words(ComparisonStatus), "kind": words(ComparisonKind)},
)


def list_tables(
    conn: sa.Connection,
    filters: Mapping[str, Any] | None = None,
    limit: int = 50,
    after: str = "",
    only: str = "true",
) -> ListPiece:
    """Newest first. Filters: tree, status, kind, testbox, test (a part of a unit job), person (who
    asked for it), since.

    `headline` is the headline row that a reader wants to know first, None if there is none; rows
    are counted over headline metrics, against the first reference. `only` is an SQL condition.
    """
    FILTERS.check(conn, filters)
    clause, params = where(filters, FILTERS.columns)
    clause += (" AND " if clause else "WHERE ") + only
    some = piece(conn, _LIST, (("-c.id", int),), (clause, params), limit=limit, after=after)
    return some.with_rows(
        row | {"id": ids.of_table(row["kind"], row["id"]), "testboxes": row["testboxes"] or []}
        for row in some
    )


def list_comparisons(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50, after: str = ""
) -> ListPiece:
    """The tables at addresses such as c5, as in `list_tables`."""
    return list_tables(conn, filters, limit, after, "c.kind <> 'experiment'")


def list_experiments(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50, after: str = ""
) -> ListPiece:
    """The tables at addresses such as e6, as in `list_tables`."""
    return list_tables(conn, filters, limit, after, "c.kind = 'experiment'")
