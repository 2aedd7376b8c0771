"""Specs: the unit jobs of one boot, by sha256."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot_jobs.contract.unit_job import UnitJob


class Specs(Protocol):
    """Specs: the unit jobs of one boot, by sha256."""

    def add(self, unit_jobs: Sequence[UnitJob]) -> str:
        """Store the unit jobs of a boot and return their sha256.

        Identical jobs have the same sha256 and share one row.
        """

    def get(self, sha256: str) -> list[UnitJob]:
        """Return the unit jobs of a spec in order. Fails if it does not exist."""
