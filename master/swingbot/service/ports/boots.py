"""Boots: what took place, the values of their runs, the facts of the box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from swingbot.core.model.records import (
    BootNumbers,
    BootRecord,
    Order,
)


class Boots(Protocol):
    """Boots: what took place, the values of their runs, the facts of the box."""

    def add(self, attempt: int, order: Order, image: str, outcome: Mapping[str, Any]) -> int | None:
        """Remember a boot and return its id; None if the same boot (image, testbox, spec, series, purpose, k) is known, and then nothing changes."""

    def find(
        self, image: str, testbox: str, spec: str, series: str, numbers: BootNumbers
    ) -> list[BootRecord]:
        """Boots of an image on a testbox, of those `numbers` that took place, by k."""

    def values(self, boot: int) -> dict[tuple[str, str], list[float]]:
        """Values of the boot's good runs, {(unit job, metric): one value a run}, in the order of the runs; the mean where a run gave several."""

    def problems(self, boot: int, unit_job: str) -> list[str]:
        """Why runs of this unit job are not good, in the order of the runs; warm-up runs are no problem."""

    def usual_seconds(self) -> tuple[float | None, float | None]:
        """Median seconds of the last 20 builds that really compiled and of the last 20 boots; None where there was none."""

    def seconds(self, testbox: str, spec: str) -> float | None:
        """Mean seconds of the last 20 boots of this spec on the testbox, else of any spec there; None before the first."""

    def latest_facts(self, testbox: str, *, image: str | None = None) -> dict[str, Any]:
        """Facts of the testbox's latest boot that came up, of this image if one is given; {} if there is none."""
