"""Noise records of testboxes, and the boots behind them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from swingbot.core.model.noise import NoiseRecord, PastBoot
from swingbot.service.ports.noise import MeasuredBoots
from swingbot_db.store.rows import Rows
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob

# Maximum number of boots in a record: months of a busy testbox, and a second of computing.
RECENT_BOOTS: Final = 3000
# Boots that show the noise of a testbox. In those of the doctor an item of the tuning list is off.
_COUNTED = "outcome = 'up' AND origin = 'measured' AND purpose <> 'doctor'"
# A unit job alone in a boot and the same one after others are different measurements: kernel, code
# and k are distinguished by the other unit jobs of the boot, k also by the purpose of the boot.
# Only benchmark metrics: monitors have a hundred times as many, which are not checked for swings.
_MEASURED_BOOTS = f"""
WITH recent AS (
    SELECT id, image_sha256, build_key, spec, purpose, k, series, booted_at FROM boot
    WHERE testbox = :testbox AND {_COUNTED}
    ORDER BY id DESC LIMIT :most
), code AS (
    SELECT build_key, min(tree_hash || kconfig || compiler) AS code FROM variant
      WHERE build_key IN (SELECT build_key FROM recent) GROUP BY build_key
), program AS (
    SELECT DISTINCT job ->> 'program' AS name FROM boot_spec b,
      jsonb_array_elements(b.unit_jobs) AS e (job) WHERE b.sha256 IN (SELECT spec FROM recent)
), own AS (
    SELECT id, unit_job, metric FROM measured_metric
    WHERE testbox = :testbox AND split_part(metric, '.', 1) IN (SELECT name FROM program)
), one_run AS (  -- metric by metric: the hundreds of counters beside them are not read
    SELECT r.boot, r.unit_job, m.metric, r.number, s.value
    FROM run r JOIN own m ON m.unit_job = r.unit_job
    CROSS JOIN LATERAL (SELECT avg(s.value) AS value FROM sample s
      WHERE s.run = r.id AND s.measured = m.id) s
    WHERE r.boot IN (SELECT id FROM recent) AND r.status = 'ok' AND s.value IS NOT NULL
)
SELECT o.unit_job, o.metric, x.image_sha256 || x.spec AS image, c.code || x.spec AS code,
  to_char(x.booted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
       x.series = '' AS shared, dense_rank() OVER (ORDER BY x.spec, x.purpose, x.k) AS k,
       array_agg(o.value ORDER BY o.number) AS vals, min(x.booted_at) AS at
FROM one_run o JOIN recent x ON x.id = o.boot JOIN code c ON c.build_key = x.build_key
GROUP BY o.unit_job, o.metric, x.id, x.image_sha256, x.spec, c.code, x.booted_at, x.purpose, x.k,
  x.series ORDER BY x.id
"""
_MEASURED_SPECS = f"""
WITH recent AS (
    SELECT id, spec FROM boot
    WHERE testbox = :testbox AND {_COUNTED}
    ORDER BY id DESC LIMIT :most
)
SELECT s.unit_jobs FROM recent x JOIN boot_spec s ON s.sha256 = x.spec
GROUP BY s.sha256, s.unit_jobs ORDER BY max(x.id)
"""
# Old boots of a testbox are counted only as far as the answer depends on them.
_WITH_FRESH_BOOTS = f"""
SELECT n.testbox, f.latest FROM unnest(CAST(:testboxes AS text[])) AS n (testbox)
CROSS JOIN LATERAL (SELECT coalesce(max(through), 0) AS through FROM noise_record
  WHERE testbox = n.testbox) r
CROSS JOIN LATERAL (SELECT count(*) AS fresh, max(id) AS latest FROM boot
  WHERE testbox = n.testbox AND id > r.through AND {_COUNTED}) f
WHERE f.fresh >= :least AND f.fresh >= :share * (SELECT count(*) FROM (SELECT FROM boot
  WHERE testbox = n.testbox AND {_COUNTED}
  LIMIT 1 + ceil(f.fresh / greatest(:share, 0.001))::bigint) b)
"""


class Noise(Rows):
    def measured_boots(self, testbox: str) -> dict[tuple[str, str], MeasuredBoots]:
        records: dict[tuple[str, str], MeasuredBoots] = {}
        for row in self.select(_MEASURED_BOOTS, testbox=testbox, most=RECENT_BOOTS):
            boot = PastBoot(
                code=row.code,
                image=row.image,
                day=row.day,
                k=row.k,
                shared=row.shared,
                values=tuple(row.vals),
            )
            known = records.get((row.unit_job, row.metric))
            boots, since = (known[0], known[1]) if known else ([], row.at)
            boots.append(boot)
            records[row.unit_job, row.metric] = MeasuredBoots(boots, since, row.at)
        return records

    def measured_jobs(self, testbox: str) -> dict[str, UnitJob]:
        jobs = (
            codec.typed(UnitJob, job)
            for row in self.select(_MEASURED_SPECS, testbox=testbox, most=RECENT_BOOTS)
            for job in row.unit_jobs
        )
        return {job.name: job for job in jobs}

    def with_fresh_boots(
        self, testboxes: Collection[str], least: int, share: float
    ) -> dict[str, int]:
        rows = self.select(
            _WITH_FRESH_BOOTS, testboxes=list(testboxes), least=max(1, least), share=share
        )
        return {row.testbox: row.latest for row in rows}

    def put(
        self, testbox: str, unit_job: str, metric: str, record: NoiseRecord, through: int
    ) -> None:
        self.execute(
            "INSERT INTO noise_record (testbox, unit_job, metric, detail, through) VALUES"
            " (:testbox, :job, :metric, CAST(:detail AS jsonb), :through) ON CONFLICT (testbox,"
            " unit_job, metric) DO UPDATE SET detail = excluded.detail, through ="
            " excluded.through, at = clock_timestamp()",
            testbox=testbox,
            job=unit_job,
            metric=metric,
            detail=json.dumps(codec.plain(record)),
            through=through,
        )

    def get(self, testbox: str, unit_job: str, metric: str) -> NoiseRecord | None:
        detail = self.scalar(
            "SELECT detail FROM noise_record WHERE (testbox, unit_job, metric) = (:testbox, :job,"
            " :metric)",
            testbox=testbox,
            job=unit_job,
            metric=metric,
        )
        return codec.typed(NoiseRecord, detail, "noise") if detail is not None else None
