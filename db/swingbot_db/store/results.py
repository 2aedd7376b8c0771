"""What came back: kernel builds, boots, runs and samples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from swingbot.core.model.records import BootRecord, KernelBuild, Order
from swingbot_db.store.rows import Rows


class ResultRows(Rows):
    def kernel_builds(self, build_keys: Iterable[str]) -> dict[str, KernelBuild]:
        rows = self.all(
            "SELECT build_key, status, image_sha256, errors, seconds, cached, compiler_version, files -> 'config' ->> 'sha256' AS config_sha256"
            " FROM kernel_build WHERE build_key = ANY(:keys)",
            keys=list(build_keys),
        )
        return {
            row.build_key: KernelBuild(**{**row._mapping, "errors": tuple(row.errors)})
            for row in rows
        }

    def add_kernel_build(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        build = outcome["kernel_build"]
        self.do(
            "INSERT INTO kernel_build (build_key, status, image_sha256, compiler_version, sizes, errors, files, seconds, cached, attempt, origin)"
            " VALUES (:key, :status, :image, :compiler, CAST(:sizes AS jsonb), :errors, CAST(:files AS jsonb), :seconds, :cached, :attempt, :origin)"
            " ON CONFLICT DO NOTHING",
            key=build["build_key"],
            status=outcome["status"],
            image=build.get("image_sha256") if outcome["status"] == "built" else None,
            compiler=build["compiler_version"],
            sizes=json.dumps(build.get("sizes", {})),
            errors=[*build.get("errors", ())]
            or ([outcome["reason"]] if outcome.get("reason") else []),
            files=json.dumps(outcome["files"]),
            seconds=outcome["seconds"],
            cached=build["cached"],
            attempt=attempt,
            origin=outcome.get("origin", "measured"),
        )

    def add_boot(
        self, attempt: int, order: Order, image: str, outcome: Mapping[str, Any]
    ) -> int | None:
        """Remember a boot; None if the same boot (image, testbox, spec, series, k) is known already."""
        found = self.value(
            "INSERT INTO boot (attempt, order_id, testbox, build_key, image_sha256, spec, series, k, outcome, reason, facts, files, seconds, origin)"
            " VALUES (:attempt, :order, :box, :key, :image, :spec, :series, :k, :outcome, :reason,"
            " CAST(:facts AS jsonb), CAST(:files AS jsonb), :seconds, :origin)"
            " ON CONFLICT DO NOTHING RETURNING id",
            attempt=attempt,
            order=order.id,
            box=order.testbox,
            key=order.build_key,
            image=image,
            spec=order.spec,
            series=order.series,
            k=order.k,
            outcome=outcome["status"],
            reason=outcome.get("reason"),
            facts=json.dumps(outcome.get("facts", {})),
            files=json.dumps(outcome["files"]),
            seconds=outcome["seconds"],
            origin=outcome.get("origin", "measured"),
        )
        assert found is None or isinstance(found, int)
        return found

    def boots(
        self, image: str, testbox: str, spec: str, series: str, ks: Iterable[int]
    ) -> list[BootRecord]:
        rows = self.all(
            "SELECT id, k, outcome, reason, seconds, facts FROM boot WHERE image_sha256 = :image AND testbox = :box AND spec = :spec AND series = :series"
            " AND k = ANY(:ks) ORDER BY k",
            image=image,
            box=testbox,
            spec=spec,
            series=series,
            ks=list(ks),
        )
        return [BootRecord(**row._mapping) for row in rows]

    def boot_values(self, boot: int) -> dict[tuple[str, str], list[float]]:
        """Values of the boot's good runs: {(unit job, metric): one value a run}, the mean where a run gave several."""
        rows = self.all(
            "SELECT r.unit_job, s.metric, avg(s.value) AS value FROM run r JOIN sample s ON s.run = r.id WHERE r.boot = :boot AND r.status = 'ok'"
            " GROUP BY r.unit_job, s.metric, r.number ORDER BY r.unit_job, s.metric, r.number",
            boot=boot,
        )
        values: dict[tuple[str, str], list[float]] = {}
        for row in rows:
            values.setdefault((row.unit_job, row.metric), []).append(row.value)
        return values

    def run_problems(self, boot: int, unit_job: str) -> list[str]:
        return [
            row.reason
            for row in self.all(
                "SELECT reason FROM run WHERE boot = :boot AND unit_job = :job AND status NOT IN ('ok', 'warmup') ORDER BY number",
                boot=boot,
                job=unit_job,
            )
        ]

    def usual_seconds(self) -> tuple[float | None, float | None]:
        """Median seconds of the last real builds and boots, for costs and estimates."""
        return (
            self.value(
                "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds)"
                " FROM (SELECT seconds FROM kernel_build WHERE NOT cached ORDER BY built_at DESC LIMIT 20) x"
            ),
            self.value(
                "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM (SELECT seconds FROM boot ORDER BY id DESC LIMIT 20) x"
            ),
        )
