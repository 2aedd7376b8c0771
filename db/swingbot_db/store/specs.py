"""Specs: what one boot runs, by the sha256 of its unit jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from swingbot_db.store.rows import Rows
from swingbot_jobs import codec
from swingbot_jobs.contract.unit_job import UnitJob, spec_sha256


class Specs(Rows):
    def add(self, unit_jobs: Sequence[UnitJob]) -> str:
        sha256 = spec_sha256(unit_jobs)
        self.execute(
            "INSERT INTO boot_spec (sha256, unit_jobs) VALUES (:sha, CAST(:jobs AS jsonb)) ON"
            " CONFLICT DO NOTHING",
            sha=sha256,
            jobs=json.dumps(codec.plain(unit_jobs)),
        )
        return sha256

    def get(self, sha256: str) -> list[UnitJob]:
        return [
            codec.typed(UnitJob, job)
            for job in self.scalar(
                "SELECT unit_jobs FROM boot_spec WHERE sha256 = :sha", sha=sha256
            )
        ]
