"""Specs: what one boot runs, by the sha256 of its unit jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot_jobs.contract.unit_job import UnitJob


class Specs(Protocol):
    """Specs: what one boot runs, by the sha256 of its unit jobs."""

    def add(self, unit_jobs: Sequence[UnitJob]) -> str:
        """Store the unit jobs of a boot and return their sha256. The same jobs give the same sha256 and one row."""

    def get(self, sha256: str) -> list[UnitJob]:
        """The unit jobs of a spec in their order. Fails if there is none."""
