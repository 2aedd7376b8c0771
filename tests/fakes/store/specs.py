"""Specs in memory."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot_jobs.contract.unit_job import UnitJob, spec_sha256
from tests.fakes.store.tables import Noun


class Specs(Noun):
    def add(self, unit_jobs: Sequence[UnitJob]) -> str:
        sha256 = spec_sha256(unit_jobs)
        self.db.specs.setdefault(sha256, tuple(unit_jobs))
        return sha256

    def get(self, sha256: str) -> list[UnitJob]:
        return list(self.db.specs[sha256])
