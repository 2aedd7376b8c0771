"""What a boot or a kernel caused: what must stay because of it, and its removal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot_db.keep import HELD

_FOUND: Final = {
    "boot": "SELECT build_key, NULL AS commit FROM boot WHERE id = :number",
    "variant": "SELECT build_key, CASE origin WHEN 'patch' THEN commit END AS commit FROM variant"
    " WHERE id = :number",
}
# Boots of the kernel, or the boot itself; orders that they fulfil, also those of another kernel
# with an equal image; orders of the kernel's build; and who wants any of them.
_SCOPE: Final = """
CREATE TEMPORARY TABLE forgotten_boot ON COMMIT DROP AS
  SELECT * FROM boot WHERE CASE :kind WHEN 'boot' THEN id = :number ELSE build_key = :key END;
CREATE TEMPORARY TABLE forgotten_order ON COMMIT DROP AS
  SELECT o.id, o.state FROM orders o WHERE :kind = 'variant' AND o.build_key = :key
  UNION SELECT o.id, o.state FROM forgotten_boot x
  JOIN kernel_build b ON b.image_sha256 = x.image_sha256
  JOIN orders o ON o.build_key = b.build_key AND (o.testbox, o.spec, o.series, o.purpose, o.k)
    = (x.testbox, x.spec, x.series, x.purpose, x.k);
CREATE TEMPORARY TABLE forgotten_attempt ON COMMIT DROP AS
  SELECT a.* FROM attempt a JOIN forgotten_order o ON o.id = a.order_id;
CREATE TEMPORARY TABLE forgotten_request ON COMMIT DROP AS
  SELECT w.comparison, w.bisection FROM want w JOIN forgotten_order o ON o.id = w.order_id
  UNION SELECT NULL, n.bisection FROM observation n JOIN forgotten_boot x ON x.id = n.boot;
CREATE TEMPORARY TABLE forgotten_file ON COMMIT DROP AS
  SELECT f.value ->> 'sha256' AS sha256 FROM forgotten_boot x, jsonb_each(x.files) f
  UNION SELECT f.value ->> 'sha256' FROM kernel_build b, jsonb_each(b.files) f
    WHERE :kind = 'variant' AND b.build_key = :key
  UNION SELECT f.sha256 FROM attempt_file f JOIN forgotten_attempt a ON a.id = f.attempt
"""
_REQUESTS: Final = """
SELECT CASE c.kind WHEN 'experiment' THEN 'e' ELSE 'c' END || c.id AS id,
  c.status IN ('waiting', 'running') AS open
FROM forgotten_request q JOIN comparison c ON c.id = q.comparison
UNION ALL SELECT 'b' || b.id, b.status = 'running'
FROM forgotten_request q JOIN bisection b ON b.id = q.bisection ORDER BY 1
"""
_INCIDENTS: Final = f"""{HELD}
SELECT DISTINCT i.id, i.status FROM incident i LEFT JOIN asker k ON k.why = 'incident i' || i.id
LEFT JOIN forgotten_request q ON q.comparison = k.comparison OR q.bisection = k.bisection
WHERE num_nonnulls(q.comparison, q.bisection) > 0 OR :kind = 'variant' AND (i.culprit = :number
  OR EXISTS (SELECT FROM sighting s WHERE s.incident = i.id AND s.culprit = :number)) ORDER BY i.id
"""
_REPORTS: Final = """
SELECT id, state FROM report WHERE incident = ANY(:incidents) AND state <> 'dropped' ORDER BY id
"""
_TREES: Final = """
SELECT t.name FROM tree t JOIN variant v ON v.tree = t.id
  AND v.commit IN (t.base_commit, t.tip_commit)
WHERE :kind = 'variant' AND v.build_key = :key AND t.state = 'watched' ORDER BY t.name
"""
_COUNTS: Final = """
SELECT (SELECT count(*) FROM forgotten_boot) AS boots,
  (SELECT count(*) FROM run r JOIN forgotten_boot x ON x.id = r.boot) AS runs,
  (SELECT coalesce(sum(m.samples), 0) FROM boot_mean m JOIN forgotten_boot x ON x.id = m.boot)
    AS samples,
  (SELECT count(*) FROM measured_metric m WHERE EXISTS (SELECT FROM boot_mean b
    JOIN forgotten_boot x ON x.id = b.boot WHERE b.measured = m.id)
    AND NOT EXISTS (SELECT FROM boot_mean b WHERE b.measured = m.id
      AND b.boot NOT IN (SELECT id FROM forgotten_boot))) AS names,
  (SELECT count(*) FROM forgotten_order) AS orders,
  (SELECT count(*) FROM forgotten_attempt) AS attempts,
  (SELECT count(*) FROM forgotten_file) AS files,
  (SELECT count(*) FROM forgotten_row) AS rows
"""
# Rows of tables that rest on the boots: either side is their kernel, by its image.
_ROWS: Final = """
CREATE TEMPORARY TABLE forgotten_row ON COMMIT DROP AS
  SELECT DISTINCT r.comparison, r.testbox, r.unit_job, r.metric, r.against, r.arm
  FROM forgotten_request q JOIN comparison_arm a ON a.comparison = q.comparison
  JOIN variant v ON v.id = a.variant JOIN kernel_build b ON b.build_key = v.build_key
  JOIN forgotten_boot x ON x.image_sha256 = b.image_sha256
  JOIN comparison_row r ON r.comparison = q.comparison AND r.testbox = x.testbox
    AND (r.arm = a.arm OR r.reference = a.arm)
  WHERE EXISTS (SELECT FROM run n WHERE n.boot = x.id AND n.unit_job = r.unit_job)
"""
_NEEDED: Final = """
SELECT EXISTS (SELECT FROM variant v WHERE v.commit = :commit
  AND (EXISTS (SELECT FROM kernel_build b WHERE b.build_key = v.build_key)
    OR EXISTS (SELECT FROM orders o WHERE o.build_key = v.build_key)
    OR EXISTS (SELECT FROM comparison_arm a JOIN comparison c ON c.id = a.comparison
      WHERE a.variant = v.id AND c.status IN ('waiting', 'running'))))
"""
_NO_SIDE: Final = json.dumps({"boots": 0, "runs": 0, "mean": None, "stddev": None})
_KEY: Final = "comparison, testbox, unit_job, metric, against, arm"
# What refers to a row goes before it. The trigger of `sample` removes the means.
_REMOVE: Final = f"""
UPDATE observation n SET boot = NULL, "values" = '{{}}', skip = 'removed' FROM forgotten_boot x
  WHERE n.boot = x.id;
DELETE FROM noise_record n USING forgotten_boot x JOIN run r ON r.boot = x.id
  WHERE n.testbox = x.testbox AND n.unit_job = r.unit_job OR n.through = x.id;
CREATE TEMPORARY TABLE forgotten_name ON COMMIT DROP AS
  SELECT DISTINCT m.* FROM measured_metric m JOIN boot_mean b ON b.measured = m.id
  JOIN forgotten_boot x ON x.id = b.boot;
DELETE FROM sample s USING run r JOIN forgotten_boot x ON x.id = r.boot WHERE s.run = r.id;
DELETE FROM forgotten_name m WHERE EXISTS (SELECT FROM boot_mean b WHERE b.measured = m.id);
DELETE FROM measured_metric m USING forgotten_name n WHERE m.id = n.id;
DELETE FROM noise_record m USING forgotten_name n
  WHERE (m.testbox, m.unit_job, m.metric) = (n.testbox, n.unit_job, n.metric);
DELETE FROM tree_history m USING forgotten_name n
  WHERE (m.testbox, m.unit_job, m.metric) = (n.testbox, n.unit_job, n.metric);
DELETE FROM comparison_row r USING forgotten_row f JOIN forgotten_name n
  ON (f.testbox, f.unit_job, f.metric) = (n.testbox, n.unit_job, n.metric)
  WHERE (r.comparison, r.testbox, r.unit_job, r.metric, r.against, r.arm)
    = (f.comparison, f.testbox, f.unit_job, f.metric, f.against, f.arm)
  AND NOT EXISTS (SELECT FROM swing s WHERE (s.comparison, s.testbox, s.unit_job, s.metric)
    = (r.comparison, r.testbox, r.unit_job, r.metric));
UPDATE comparison_row SET verdict = 'invalid', change_pct = NULL,
  detail = detail - 'points' - 'spread_ratio' || jsonb_build_object('verdict', 'invalid',
    'reason', CAST(:note AS text), 'change_pct', NULL, 'interval_pct', NULL, 'p', NULL,
    'more_boots', NULL, 'base', CAST(:none AS jsonb), 'head', CAST(:none AS jsonb))
  WHERE ({_KEY}) IN (SELECT {_KEY} FROM forgotten_row);
UPDATE swing s SET state = 'refuted' FROM forgotten_row f WHERE s.state IN ('suspected', 'open')
  AND (s.comparison, s.testbox, s.unit_job, s.metric)
    = (f.comparison, f.testbox, f.unit_job, f.metric);
UPDATE comparison c SET reason = concat_ws('; ', c.reason, CAST(:note AS text))
  FROM forgotten_request q WHERE q.comparison = c.id;
UPDATE bisection b SET reason = concat_ws('; ', b.reason, CAST(:note AS text))
  FROM forgotten_request q WHERE q.bisection = b.id;
UPDATE report SET reason = concat_ws('; ', reason, CAST(:note AS text)) WHERE id = ANY(:reports);
INSERT INTO incident_event (incident, act, who, reason, detail)
  SELECT i, 'removed', :who, :note, jsonb_build_object('removed', CAST(:id AS text))
  FROM unnest(CAST(:incidents AS bigint[])) i;
DELETE FROM reparse p USING run r JOIN forgotten_boot x ON x.id = r.boot WHERE p.run = r.id;
CREATE TEMPORARY TABLE forgotten_root ON COMMIT DROP AS
  SELECT DISTINCT r.result_root AS id FROM run r JOIN forgotten_boot x ON x.id = r.boot;
DELETE FROM run r USING forgotten_boot x WHERE x.id = r.boot;
DELETE FROM result_root t USING forgotten_root f WHERE t.id = f.id
  AND NOT EXISTS (SELECT FROM run r WHERE r.result_root = t.id);
DELETE FROM boot b USING forgotten_boot x WHERE x.id = b.id;
DELETE FROM kernel_build WHERE :kind = 'variant' AND build_key = :key;
DELETE FROM build_forecast WHERE :kind = 'variant' AND build_key = :key;
UPDATE testbox_now n SET attempt = NULL FROM forgotten_attempt a WHERE n.attempt = a.id;
UPDATE testbox_event n SET attempt = NULL FROM forgotten_attempt a WHERE n.attempt = a.id;
DELETE FROM dispatch d USING forgotten_attempt a WHERE d.attempt = a.id;
DELETE FROM attempt t USING forgotten_attempt a WHERE t.id = a.id;
DELETE FROM want w USING forgotten_order o WHERE w.order_id = o.id;
DELETE FROM orders t USING forgotten_order o WHERE t.id = o.id;
INSERT INTO access_event (act, who, detail) VALUES ('forget', :who, :audit)
"""
_STILL_NAMED: Final = """
SELECT f.value ->> 'sha256' AS sha256 FROM boot x, jsonb_each(x.files) f
UNION SELECT f.value ->> 'sha256' FROM kernel_build b, jsonb_each(b.files) f
UNION SELECT sha256 FROM attempt_file
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What goes with a boot or a kernel.

    `counts` by table; `open` is under way because of it and must end first; `counted_by` names what
    counts it and needs force; `shown_on` are the ids of all that will say that it was removed;
    `commit` is the one that swingbot made of a patch for the kernel (None: it made none).
    """

    id: str
    counts: Mapping[str, int]
    open: Sequence[str]
    counted_by: Sequence[str]
    shown_on: Sequence[str]
    files: Sequence[str]
    commit: str | None


def foresee(conn: sa.Connection, id: str) -> Removal:
    """Find what the boot or kernel `id` caused, in this transaction. Raises BadId, NotFound."""
    kind, number = ids.read(id)
    if kind not in _FOUND:
        raise ids.BadId(
            f"{id!r} is the id of a {kind}; give the id of a boot or a kernel (x80, v3)"
        )
    found = conn.execute(sa.text(_FOUND[kind]), {"number": number}).first()
    if found is None:
        raise NotFound(missing(kind, number))
    given = {"kind": kind, "number": number, "key": found.build_key}
    _all(conn, f"{_SCOPE};\n{_ROWS}", given)

    def rows(sql: str, **more: Any) -> Sequence[sa.Row[Any]]:
        return conn.execute(sa.text(sql), given | more).all()

    requests, incidents = rows(_REQUESTS), rows(_INCIDENTS)
    reports = rows(_REPORTS, incidents=[row.id for row in incidents])
    open_orders = rows(
        "SELECT id FROM forgotten_order WHERE state IN ('waiting', 'ready', 'running') ORDER BY id"
    )
    return Removal(
        id=id,
        counts=dict(rows(_COUNTS)[0]._mapping),
        open=[
            *(row.id for row in requests if row.open),
            *(ids.show("order", row.id) for row in open_orders),
        ],
        counted_by=[
            *(f"report {ids.show('report', row.id)} ({row.state})" for row in reports),
            *(f"incident {ids.show('incident', row.id)} ({row.status})" for row in incidents),
            *(f"watched tree {row.name}" for row in rows(_TREES)),
            *((row.id for row in requests) if len(requests) > 1 else ()),
        ],
        shown_on=[
            *(row.id for row in requests),
            *(ids.show("incident", row.id) for row in incidents),
            *(ids.show("report", row.id) for row in reports),
        ],
        files=[row.sha256 for row in rows("SELECT sha256 FROM forgotten_file ORDER BY 1")],
        commit=found.commit,
    )


def remove(conn: sa.Connection, plan: Removal, who: str, why: str) -> list[str]:
    """Remove what `foresee` found in this transaction; return the files that nothing names then.

    Pages of `shown_on` say so with `why`, and the log of access has a line.
    """
    kind, number = ids.read(plan.id)
    note = f"{plan.id} was removed by {who}" + (f": {why}" if why else "")
    key = conn.execute(sa.text(_FOUND[kind]), {"number": number}).one().build_key
    shown = [ids.read(id) for id in plan.shown_on]
    _all(
        conn,
        _REMOVE,
        {
            "kind": kind,
            "key": key,
            "note": note,
            "none": _NO_SIDE,
            "who": who,
            "id": plan.id,
            "incidents": [number for of, number in shown if of == "incident"],
            "reports": [number for of, number in shown if of == "report"],
            "audit": f"{note}; " + ", ".join(f"{n} {name}" for name, n in plan.counts.items()),
        },
    )
    left = {row.sha256 for row in conn.execute(sa.text(_STILL_NAMED))}
    return [sha256 for sha256 in plan.files if sha256 not in left]


def needs_commit(conn: sa.Connection, commit: str) -> bool:
    """Return whether a kernel of `commit` was built or is wanted."""
    return bool(conn.execute(sa.text(_NEEDED), {"commit": commit}).scalar_one())


def _all(conn: sa.Connection, statements: str, given: Mapping[str, Any]) -> None:
    for statement in statements.split(";\n"):
        conn.execute(sa.text(statement), given)
