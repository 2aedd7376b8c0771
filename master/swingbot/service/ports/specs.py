"""Specs: what one boot runs, by the sha256 of its unit jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot_jobs.contract.unit_job import UnitJob


class Specs(Protocol):
    """Specs: what one boot runs, by the sha256 of its unit jobs."""

    def add(self, unit_jobs: Sequence[UnitJob]) -> str: ...

    def get(self, sha256: str) -> list[UnitJob]: ...
