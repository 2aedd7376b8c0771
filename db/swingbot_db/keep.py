"""References to raw results, from which retention decides."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import sqlalchemy as sa

from swingbot.core.keep.retention import FileReference
from swingbot.core.limits import METRIC_NAMES

# Orders that are still needed, and why. Orders behind a report are needed forever: both sides, its
# proof and the work that led to it.
HELD: Final = """
WITH asker AS (
  SELECT id AS comparison, NULL::bigint AS bisection, CASE kind WHEN 'experiment' THEN 'e'
    ELSE 'c' END || id || ' is under way' AS why FROM comparison
    WHERE status IN ('waiting', 'running')
  UNION ALL SELECT NULL, id, 'b' || id || ' is under way' FROM bisection WHERE status = 'running'
  UNION ALL SELECT comparison, NULL, 'incident i' || id FROM incident WHERE comparison IS NOT NULL
  UNION ALL SELECT fix_check, NULL, 'incident i' || id FROM incident WHERE fix_check IS NOT NULL
  UNION ALL SELECT comparison, NULL, 'incident i' || incident FROM sighting
    WHERE comparison IS NOT NULL
  UNION ALL SELECT comparison, NULL, 'incident i' || incident FROM incident_gate
    WHERE comparison IS NOT NULL
  UNION ALL SELECT NULL, bisection, 'incident i' || incident FROM incident_bisection
  UNION ALL SELECT NULL, bisection, 'incident i' || incident FROM sighting
  UNION ALL SELECT c.id, NULL, 'incident i' || ib.incident FROM swing s
    JOIN bisection_family b ON b.root = s.bisection
    JOIN incident_bisection ib ON ib.bisection = b.id
    CROSS JOIN LATERAL (VALUES (s.comparison), (s.proof)) c (id) WHERE c.id IS NOT NULL
), held_order AS MATERIALIZED (
  SELECT id AS order_id, 'o' || id || ' is open' AS why FROM orders
    WHERE state IN ('waiting', 'ready', 'running')
  UNION ALL SELECT w.order_id, k.why FROM want w JOIN asker k ON k.comparison = w.comparison
  UNION ALL SELECT w.order_id, k.why FROM want w JOIN asker k ON k.bisection = w.bisection
  UNION ALL SELECT x.order_id, k.why FROM observation n JOIN asker k ON k.bisection = n.bisection
    JOIN boot x ON x.id = n.boot
), held_boot AS MATERIALIZED (
  SELECT x.id AS boot, min(h.why) AS why FROM held_order h JOIN orders o ON o.id = h.order_id
    AND o.kind = 'boot'
  JOIN kernel_build b ON b.build_key = o.build_key
  JOIN boot x ON x.image_sha256 = b.image_sha256 AND x.testbox = o.testbox AND x.spec = o.spec
    AND x.series = o.series AND x.purpose = o.purpose AND x.k = o.k GROUP BY x.id
), held_build AS MATERIALIZED (
  SELECT build_key, min(why) AS why FROM (
    SELECT o.build_key, h.why FROM held_order h JOIN orders o ON o.id = h.order_id
    UNION ALL SELECT x.build_key, h.why FROM held_boot h JOIN boot x ON x.id = h.boot
    UNION ALL SELECT v.build_key, 'tree ' || t.name || ' is watched' FROM tree t
      JOIN variant v ON v.tree = t.id AND v.commit IN (t.base_commit, t.tip_commit)
      WHERE t.state = 'watched'
  ) x GROUP BY build_key
)
"""
_NAMED: Final = f"""{HELD}
SELECT f.value ->> 'sha256' AS sha256, f.key AS name, greatest(b.built_at, (SELECT max(booted_at)
  FROM boot x WHERE x.image_sha256 = b.image_sha256)) AS used,
       h.why AS held
FROM kernel_build b CROSS JOIN LATERAL jsonb_each(b.files) f
  LEFT JOIN held_build h ON h.build_key = b.build_key
UNION ALL
SELECT f.value ->> 'sha256', f.key, x.booted_at, h.why FROM boot x
  CROSS JOIN LATERAL jsonb_each(x.files) f LEFT JOIN held_boot h ON h.boot = x.id
UNION ALL
SELECT f.value ->> 'sha256', f.key, a.ended_at,
       CASE WHEN a.state = 'ended' AND a.ingested_at IS NULL THEN 'a' || a.id ||
         ' is not taken in yet'
            ELSE (SELECT min(h.why) FROM held_order h WHERE h.order_id = a.order_id) END
FROM attempt a CROSS JOIN LATERAL jsonb_each(CASE jsonb_typeof(coalesce(a.outcome, a.late) ->
  'files') WHEN 'object' THEN coalesce(a.outcome, a.late) -> 'files'
     ELSE '{{}}' END) f
WHERE a.state <> 'running'
"""


def named_artifacts(conn: sa.Connection) -> Iterator[FileReference]:
    """References to stored files, by kernel build, boot and attempt; a file may have several."""
    for row in conn.execution_options(stream_results=True).execute(sa.text(_NAMED)):
        if row.sha256 is not None:
            yield FileReference(sha256=row.sha256, name=row.name, used=row.used, held=row.held)


# Boots of untrusted kernels whose image went out of use before :before, without those that are
# held, and their samples under names that no trusted kernel reported.
_EXPIRED_SAMPLES: Final = f"""{HELD}, of_image AS (
  SELECT image_sha256, max(booted_at) AS used FROM boot GROUP BY image_sha256
), expired AS (
  SELECT x.id FROM boot x JOIN of_image i ON i.image_sha256 = x.image_sha256
  JOIN orders o ON o.id = x.order_id JOIN variant v ON v.id = o.variant
  WHERE v.trust = 'untrusted' AND i.used < :before AND x.id NOT IN (SELECT boot FROM held_boot)
)
DELETE FROM sample s USING run r, measured_metric m
WHERE r.boot IN (SELECT id FROM expired) AND s.run = r.id AND m.id = s.measured AND NOT m.trusted
"""
_EXPIRED_NAMES: Final = """
DELETE FROM measured_metric m WHERE NOT m.trusted
  AND NOT EXISTS (SELECT FROM boot_mean b WHERE b.measured = m.id)
"""
# Of unit jobs that have more than :most names of trusted kernels and are still measured: names of
# monitors that no boot since :before has, nor one that is held.
_UNSEEN_NAMES: Final = f"""{HELD}, crowded AS MATERIALIZED (
  SELECT m.id, m.testbox, m.unit_job, m.metric FROM measured_metric m
  JOIN (SELECT testbox, unit_job FROM measured_metric WHERE trusted GROUP BY 1, 2
    HAVING count(*) > :most) c USING (testbox, unit_job) WHERE m.trusted
), seen AS MATERIALIZED (
  SELECT DISTINCT c.* FROM crowded c JOIN boot_mean b ON b.measured = c.id
  JOIN boot x ON x.id = b.boot
  WHERE x.booted_at >= :before OR x.id IN (SELECT boot FROM held_boot)
), benchmark AS MATERIALIZED (
  SELECT DISTINCT j ->> 'name' AS unit_job, j ->> 'program' AS program
  FROM boot_spec, jsonb_array_elements(unit_jobs) j
)
SELECT id FROM crowded WHERE id NOT IN (SELECT id FROM seen)
  AND (testbox, unit_job) IN (SELECT testbox, unit_job FROM seen)
  AND (unit_job, split_part(metric, '.', 1)) NOT IN (SELECT unit_job, program FROM benchmark)
"""
_SAMPLES_OF_NAMES: Final = """
DELETE FROM sample s USING boot_mean b, run r
WHERE b.measured = ANY(:names) AND r.boot = b.boot AND s.run = r.id AND s.measured = b.measured
"""
_NAMES: Final = "DELETE FROM measured_metric WHERE id = ANY(:names)"


def expire_names(conn: sa.Connection, before: datetime) -> int:
    """Delete names of metrics that were last used `before`, with their samples; return how many.

    They are those that only untrusted kernels reported and, where trusted ones use more than half
    of the budget, those of their monitors: what a broken monitor made up has an end.
    """
    conn.execute(sa.text(_EXPIRED_SAMPLES), {"before": before})
    untrusted = conn.execute(sa.text(_EXPIRED_NAMES)).rowcount
    asked = {"before": before, "most": METRIC_NAMES // 2}
    unseen = list(conn.execute(sa.text(_UNSEEN_NAMES), asked).scalars())
    conn.execute(sa.text(_SAMPLES_OF_NAMES), {"names": unseen})
    return untrusted + conn.execute(sa.text(_NAMES), {"names": unseen}).rowcount
