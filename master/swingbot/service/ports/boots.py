"""Boots: what took place, the values of their runs, the facts of the box."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from swingbot.core.model.records import (
    BootRecord,
    Order,
)


class Boots(Protocol):
    """Boots: what took place, the values of their runs, the facts of the box."""

    def add(self, attempt: int, order: Order, image: str, outcome: Mapping[str, Any]) -> int | None:
        """Remember a boot; None if the same boot (image, testbox, spec, series, k) is known already."""

    def find(
        self, image: str, testbox: str, spec: str, series: str, ks: Iterable[int]
    ) -> list[BootRecord]: ...

    def values(self, boot: int) -> dict[tuple[str, str], list[float]]:
        """Values of the boot's good runs: {(unit job, metric): one value a run}, the mean where a run gave several."""

    def problems(self, boot: int, unit_job: str) -> list[str]: ...

    def usual_seconds(self) -> tuple[float | None, float | None]:
        """Median seconds of the last real builds and boots, for costs and estimates."""

    def seconds(self, testbox: str, spec: str) -> float | None:
        """Mean of the last 20 boots of this spec on the testbox, else of any; None before the first."""

    def latest_facts(self, testbox: str, *, image: str | None = None) -> dict[str, Any]: ...
