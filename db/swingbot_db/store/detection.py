"""What detection remembers: levels of earlier tips, swings under proof, noise records, the state of testboxes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from swingbot.core.model.noise import MeasuredBoot, NoiseRecord
from swingbot.core.model.records import Comparison, Level
from swingbot_db.store.comparisons import ComparisonRows

# Boots that a record is made of at most: months of a busy testbox, and a second of computing.
RECENT_BOOTS: Final = 3000

# A unit job alone in a boot and the same one after others are not the same measurement: kernel, code and k are told apart by what else ran.
# Of the benchmarks' own metrics alone: monitors give a hundred times as many, which nobody detects swings in.
_MEASURED = """
WITH recent AS (
    SELECT id, image_sha256, build_key, spec, k, series, booted_at FROM boot
    WHERE testbox = :box AND outcome = 'up' AND origin = 'measured' ORDER BY id DESC LIMIT :most
), code AS (
    SELECT build_key, min(tree_hash || kconfig || compiler) AS code FROM variant WHERE build_key IN (SELECT build_key FROM recent) GROUP BY build_key
), program AS (
    SELECT DISTINCT job ->> 'program' AS name FROM boot_spec b, jsonb_array_elements(b.unit_jobs) AS e (job) WHERE b.sha256 IN (SELECT spec FROM recent)
), one_run AS (
    SELECT r.boot, r.unit_job, s.metric, r.number, avg(s.value) AS value
    FROM run r JOIN sample s ON s.run = r.id
    WHERE r.boot IN (SELECT id FROM recent) AND r.status = 'ok' AND split_part(s.metric, '.', 1) IN (SELECT name FROM program)
    GROUP BY r.boot, r.unit_job, s.metric, r.number
)
SELECT o.unit_job, o.metric, x.image_sha256 || x.spec AS image, c.code || x.spec AS code, to_char(x.booted_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
       x.series = '' AS shared, dense_rank() OVER (ORDER BY x.spec, x.k) AS k,
       array_agg(o.value ORDER BY o.number) AS vals, min(x.booted_at) AS at
FROM one_run o JOIN recent x ON x.id = o.boot JOIN code c ON c.build_key = x.build_key
GROUP BY o.unit_job, o.metric, x.id, x.image_sha256, x.spec, c.code, x.booted_at, x.k, x.series ORDER BY x.id
"""
_LEVELS = """
SELECT c.id AS comparison, c.head AS variant, v.commit, (r.detail->'head'->>'mean')::double precision AS mean, (r.detail->'head'->>'boots')::integer AS boots
FROM comparison c JOIN comparison_row r ON r.comparison = c.id JOIN variant v ON v.id = c.head
WHERE c.tree = :tree AND c.kind = 'watch' AND c.status = 'done' AND c.id < :before
  AND (r.testbox, r.unit_job, r.metric) = (:box, :job, :metric) AND r.detail->'head'->>'mean' IS NOT NULL
ORDER BY c.id DESC LIMIT :most
"""


class DetectionRows(ComparisonRows):
    def measured_boots(
        self, testbox: str
    ) -> dict[tuple[str, str], tuple[list[MeasuredBoot], datetime, datetime]]:
        """Benchmark metrics of the testbox's recent boots by (unit job, metric), oldest first, with the times of the first and the last."""
        found: dict[tuple[str, str], tuple[list[MeasuredBoot], datetime, datetime]] = {}
        for row in self.all(_MEASURED, box=testbox, most=RECENT_BOOTS):
            boot = MeasuredBoot(
                code=row.code,
                image=row.image,
                day=row.day,
                k=row.k,
                shared=row.shared,
                values=tuple(row.vals),
            )
            known = found.get((row.unit_job, row.metric))
            boots, since = (known[0], known[1]) if known else ([], row.at)
            boots.append(boot)
            found[row.unit_job, row.metric] = (boots, since, row.at)
        return found

    def boots_since_record(self, testbox: str) -> tuple[int | None, int, int]:
        """(latest measured boot, how many came after the noise records were made, how many there are)."""
        row = self.first(
            "SELECT max(id) AS latest, count(*) FILTER (WHERE id > COALESCE((SELECT max(through) FROM noise_record WHERE testbox = :box), 0)) AS fresh,"
            " count(*) AS n FROM boot WHERE testbox = :box AND outcome = 'up' AND origin = 'measured'",
            box=testbox,
        )
        assert row is not None
        return row.latest, row.fresh, row.n

    def put_noise_record(
        self, testbox: str, unit_job: str, metric: str, record: NoiseRecord, through: int
    ) -> None:
        self.do(
            "INSERT INTO noise_record (testbox, unit_job, metric, detail, through) VALUES (:box, :job, :metric, CAST(:detail AS jsonb), :through)"
            " ON CONFLICT (testbox, unit_job, metric) DO UPDATE SET detail = excluded.detail, through = excluded.through, at = clock_timestamp()",
            box=testbox,
            job=unit_job,
            metric=metric,
            detail=json.dumps(record.to_json()),
            through=through,
        )

    def noise_record(self, testbox: str, unit_job: str, metric: str) -> NoiseRecord | None:
        found = self.value(
            "SELECT detail FROM noise_record WHERE (testbox, unit_job, metric) = (:box, :job, :metric)",
            box=testbox,
            job=unit_job,
            metric=metric,
        )
        return NoiseRecord.from_json(found) if found is not None else None

    def recent_levels(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int, most: int
    ) -> list[Level]:
        """What earlier tips of the tree measured, the latest first."""
        rows = self.all(
            _LEVELS, tree=tree, before=before, box=testbox, job=unit_job, metric=metric, most=most
        )
        return [Level(**row._mapping) for row in rows]

    def last_swing(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int
    ) -> int | None:
        """The latest earlier comparison in which this metric swung, or was suspected because of its history: older levels say nothing any more."""
        found = self.value(
            "SELECT max(c.id) FROM swing s JOIN comparison c ON c.id = s.comparison WHERE c.tree = :tree AND c.id < :before"
            " AND (s.testbox, s.unit_job, s.metric) = (:box, :job, :metric) AND (s.state <> 'refuted' OR s.source NOT IN ('base', 'expected'))",
            tree=tree,
            before=before,
            box=testbox,
            job=unit_job,
            metric=metric,
        )
        assert found is None or isinstance(found, int)
        return found

    def suspect(
        self,
        comparison: int,
        testbox: str,
        unit_job: str,
        metric: str,
        *,
        direction: str,
        change_pct: float,
        source: str,
        anchor: int | None,
        reason: str,
    ) -> None:
        self.do(
            "INSERT INTO swing (comparison, testbox, unit_job, metric, direction, change_pct, state, source, anchor, evidence)"
            " VALUES (:c, :box, :job, :metric, :direction, :pct, 'suspected', :source, :anchor, jsonb_build_object('alarm', CAST(:reason AS text)))"
            " ON CONFLICT DO NOTHING",
            c=comparison,
            box=testbox,
            job=unit_job,
            metric=metric,
            direction=direction,
            pct=change_pct,
            source=source,
            anchor=anchor,
            reason=reason,
        )

    def set_proof(self, swing: int, proof: int) -> None:
        self.do(
            "UPDATE swing SET proof = :proof WHERE id = :id AND proof IS NULL",
            id=swing,
            proof=proof,
        )

    def weigh_swing(
        self, swing: int, state: str, evidence: Mapping[str, Any], change_pct: float | None = None
    ) -> None:
        """Record what stage 2 said of a suspected swing; the change is from then on that of its own pairs."""
        self.do(
            "UPDATE swing SET state = :state, evidence = evidence || CAST(:evidence AS jsonb), change_pct = COALESCE(:pct, change_pct)"
            " WHERE id = :id AND state = 'suspected'",
            id=swing,
            state=state,
            evidence=json.dumps(evidence),
            pct=change_pct,
        )

    def comparisons_under_proof(self) -> list[Comparison]:
        return self._comparisons("c.kind IN ('prove', 'watch') AND c.status = 'running'")

    def extend_comparison(self, number: int, boots: int) -> None:
        """Ask for more boots a side of a comparison that runs: it is placed once more."""
        self.do(
            "UPDATE comparison SET boots = :boots, status = 'waiting' WHERE id = :id AND status = 'running' AND boots < :boots",
            id=number,
            boots=boots,
        )

    def renew_comparison(self, number: int, first_k: int) -> None:
        """Boot both kernels of a comparison that runs afresh, from `first_k` on; what it booted so far counts no more."""
        self.do(
            "UPDATE comparison SET first_k = :k, status = 'waiting' WHERE id = :id AND status = 'running' AND first_k < :k",
            id=number,
            k=first_k,
        )

    def set_testbox(self, name: str, state: str, reason: str | None) -> bool:
        """False if there is no such testbox or it was so already."""
        return (
            self.do(
                "UPDATE testbox SET state = :state, reason = :reason, updated_at = clock_timestamp()"
                " WHERE name = :name AND state <> 'gone' AND (state, reason) IS DISTINCT FROM (:state, :reason)",
                name=name,
                state=state,
                reason=reason,
            )
            == 1
        )

    def anchor_orders(self) -> set[int]:
        """Open orders of anchor kernels: the only ones that a quarantined testbox gets."""
        rows = self.all(
            "SELECT w.order_id FROM want w JOIN comparison c ON c.id = w.comparison JOIN orders o ON o.id = w.order_id"
            " WHERE c.kind = 'anchor' AND o.state IN ('waiting', 'ready', 'running')"
        )
        return {row.order_id for row in rows}

    def idle_seconds(self, testbox: str, *, queue: bool = True) -> float | None:
        """How long a testbox has had nothing to do; 0 while it has, None if nothing ever was asked of it. Without `queue` what waits for
        it does not count, because it cannot begin."""
        busy = ("waiting", "ready", "running") if queue else ("running",)
        found = self.value(
            "SELECT CASE WHEN bool_or(state = ANY(:busy)) THEN 0 ELSE extract(epoch FROM clock_timestamp() - max(ended_at)) END"
            " FROM orders WHERE testbox = :box",
            box=testbox,
            busy=list(busy),
        )
        return None if found is None else float(found)

    def anchors(self, testbox: str, *statuses: str) -> list[Comparison]:
        return self._comparisons(
            "c.kind = 'anchor' AND c.status = ANY(:statuses) AND EXISTS (SELECT FROM comparison_part p WHERE p.comparison = c.id AND p.testbox = :box)",
            statuses=list(statuses),
            box=testbox,
        )

    def anchor_kernel(self, testbox: str) -> tuple[int, int, str] | None:
        """(tree, variant, spec) of the testbox's last anchor, else of the base of its latest watch comparison: a kernel that is built."""
        row = self.first(
            "SELECT c.tree, c.base, p.spec FROM comparison c JOIN comparison_part p ON p.comparison = c.id"
            " WHERE c.kind IN ('anchor', 'watch') AND c.status = 'done' AND p.testbox = :box ORDER BY c.kind = 'anchor' DESC, c.id DESC LIMIT 1",
            box=testbox,
        )
        return (row.tree, row.base, row.spec) if row else None

    def mark_anchor(self, number: int, mark: str) -> None:
        """An anchor with a mark is no measure of what the testbox is."""
        self.do(
            "UPDATE comparison SET reason = :mark WHERE id = :id AND kind = 'anchor' AND reason IS NULL",
            id=number,
            mark=mark,
        )

    def anchor_mark(self, number: int) -> str | None:
        found = self.value("SELECT reason FROM comparison WHERE id = :id", id=number)
        assert found is None or isinstance(found, str)
        return found

    def testbox_reasons(self) -> dict[str, tuple[str, str | None]]:
        """State of each testbox, and why."""
        return {
            row.name: (row.state, row.reason)
            for row in self.all("SELECT name, state, reason FROM testbox ORDER BY name")
        }
