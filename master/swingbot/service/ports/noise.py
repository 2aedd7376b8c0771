"""Noise records of testboxes, and the boots that they are made of."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from swingbot.core.model.noise import MeasuredBoot, NoiseRecord


class Noise(Protocol):
    """Noise records of testboxes, and the boots that they are made of."""

    def measured_boots(
        self, testbox: str
    ) -> dict[tuple[str, str], tuple[list[MeasuredBoot], datetime, datetime]]:
        """Benchmark metrics of the testbox's last 3000 measured boots, {(unit job, metric): (boots, oldest first, time of the first, time of the last)}."""

    def fresh_boots(self, testbox: str) -> tuple[int | None, int, int]:
        """(latest measured boot or None, how many came after the noise records were made, how many there are)."""

    def put(
        self, testbox: str, unit_job: str, metric: str, record: NoiseRecord, through: int
    ) -> None:
        """Store a noise record, made of boots up to id `through`; it replaces the one before."""

    def get(self, testbox: str, unit_job: str, metric: str) -> NoiseRecord | None:
        """The noise record of a metric on a testbox; None if there is none."""
