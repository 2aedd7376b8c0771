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
        """Benchmark metrics of the testbox's recent boots by (unit job, metric), oldest first, with the times of the first and the last."""

    def fresh_boots(self, testbox: str) -> tuple[int | None, int, int]:
        """(latest measured boot, how many came after the noise records were made, how many there are)."""

    def put(
        self, testbox: str, unit_job: str, metric: str, record: NoiseRecord, through: int
    ) -> None: ...

    def get(self, testbox: str, unit_job: str, metric: str) -> NoiseRecord | None: ...
