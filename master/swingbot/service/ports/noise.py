"""Noise records of testboxes, and the boots they are computed from."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple, Protocol

from swingbot.core.model.noise import NoiseRecord, PastBoot
from swingbot_jobs.contract.unit_job import UnitJob


class MeasuredBoots(NamedTuple):
    boots: list[PastBoot]  # oldest first
    first: datetime
    last: datetime


class Noise(Protocol):
    """Noise records of testboxes, and the boots they are computed from."""

    def measured_boots(self, testbox: str) -> dict[tuple[str, str], MeasuredBoots]:
        """Return the testbox's last 3000 measured boots, by (unit job, metric) of benchmarks.

        Boots of a doctor's night, which lack an item of the tuning list, do not count.
        """

    def measured_jobs(self, testbox: str) -> dict[str, UnitJob]:
        """Return the unit jobs of the same boots by name, in their latest form."""

    def with_fresh_boots(
        self, testboxes: Collection[str], least: int, share: float
    ) -> dict[str, int]:
        """Return the latest measured boot of each testbox that has enough of them after its noise
        records were computed: at least 1, `least`, and `share` of all its measured boots.
        """

    def put(
        self, testbox: str, unit_job: str, metric: str, record: NoiseRecord, through: int
    ) -> None:
        """Store a noise record, computed from boots up to id `through`; it replaces the earlier
        one.
        """

    def get(self, testbox: str, unit_job: str, metric: str) -> NoiseRecord | None:
        """Return the noise record of a metric on a testbox; None if there is none."""
