"""Kernel builds: results of compiling variants, and forecasts of the next ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import (
    KernelBuild,
)
from swingbot.core.plan.costs import PastBuild
from swingbot_db.store.rows import Rows


class KernelBuilds(Rows):
    def by_key(self, build_keys: Iterable[str]) -> dict[str, KernelBuild]:
        rows = self.select(
            "SELECT build_key, status, image_sha256, errors, seconds, cached, compiler_version,"
            " files -> 'config' ->> 'sha256' AS config_sha256"
            " FROM kernel_build WHERE build_key = ANY(:keys)",
            keys=list(build_keys),
        )
        return {
            row.build_key: KernelBuild(**{**row._mapping, "errors": tuple(row.errors)})
            for row in rows
        }

    def add(self, attempt: int, outcome: Outcome) -> None:
        kernel = outcome.kernel
        assert kernel is not None
        self.execute(
            "INSERT INTO kernel_build (build_key, status, image_sha256, compiler_version, sizes,"
            " errors, files, seconds, cached, attempt, origin)"
            " VALUES (:key, :status, :image, :compiler, CAST(:sizes AS jsonb), :errors,"
            " CAST(:files AS jsonb), :seconds, :cached, :attempt, :origin)"
            " ON CONFLICT DO NOTHING",
            key=kernel.build_key,
            status=outcome.status,
            image=kernel.image_sha256 if outcome.status == "built" else None,
            compiler=kernel.compiler_version,
            sizes=json.dumps(kernel.sizes),
            errors=[*kernel.errors] or ([outcome.reason] if outcome.reason else []),
            files=json.dumps(outcome.files),
            seconds=outcome.seconds,
            cached=kernel.cached,
            attempt=attempt,
            origin=outcome.origin,
        )

    def past(self, kconfig: str, compiler: str, most: int) -> list[PastBuild]:
        rows = self.select(
            "SELECT v.commit, v.layout, b.status = 'built' AS built, b.cached, b.seconds,"
            " a.outcome ->> 'worker' AS worker"
            " FROM kernel_build b JOIN attempt a ON a.id = b.attempt JOIN orders o ON o.id ="
            " a.order_id JOIN variant v ON v.id = o.variant"
            " WHERE v.kconfig = :kconfig AND v.compiler = :compiler ORDER BY b.built_at DESC,"
            " b.attempt DESC LIMIT :most",
            kconfig=kconfig,
            compiler=compiler,
            most=most,
        )
        return [PastBuild(**row._mapping) for row in reversed(rows)]

    def put_forecasts(self, seconds: Mapping[str, float]) -> None:
        self.execute(
            "INSERT INTO build_forecast (build_key, seconds) SELECT key, value::float8 FROM"
            " jsonb_each_text(CAST(:seconds AS jsonb)) ON CONFLICT (build_key) DO UPDATE SET"
            " seconds = excluded.seconds, foreseen_at = now()",
            seconds=json.dumps(seconds),
        )

    def forecasts(self, build_keys: Iterable[str]) -> dict[str, float]:
        rows = self.select(
            "SELECT build_key, seconds FROM build_forecast WHERE build_key = ANY(:keys)",
            keys=list(build_keys),
        )
        return {row.build_key: row.seconds for row in rows}

    def object_lists(self, build_keys: Iterable[str]) -> dict[str, str]:
        rows = self.select(
            "SELECT build_key, files -> 'objects.json' ->> 'sha256' AS sha256 FROM kernel_build"
            " WHERE build_key = ANY(:keys) AND files -> 'objects.json' ->> 'sha256' IS NOT NULL",
            keys=list(build_keys),
        )
        return {row.build_key: row.sha256 for row in rows}

    def any_object_list(self, kconfig: str, compiler: str) -> str | None:
        sha256 = self.scalar(
            "SELECT b.files -> 'objects.json' ->> 'sha256' FROM kernel_build b JOIN attempt a ON"
            " a.id = b.attempt JOIN orders o ON o.id = a.order_id"
            " JOIN variant v ON v.id = o.variant WHERE v.kconfig = :kconfig AND v.compiler ="
            " :compiler AND b.status = 'built'"
            " AND b.files -> 'objects.json' ->> 'sha256' IS NOT NULL ORDER BY b.built_at DESC,"
            " b.attempt DESC LIMIT 1",
            kconfig=kconfig,
            compiler=compiler,
        )
        return None if sha256 is None else str(sha256)

    def stored(self, build_keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        rows = self.select(
            "SELECT build_key, status, image_sha256, files FROM kernel_build WHERE build_key ="
            " ANY(:keys)",
            keys=list(build_keys),
        )
        return {row.build_key: dict(row._mapping) for row in rows}
