"""Boots: their outcomes, the values of their runs, the facts of the testbox."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

from swingbot.core.model.outcome import Outcome
from swingbot.core.model.records import (
    BootNumbers,
    BootRecord,
    Order,
)


class Boots(Protocol):
    """Boots: their outcomes, the values of their runs, the facts of the testbox."""

    def add(self, attempt: int, order: Order, image: str, outcome: Outcome) -> int | None:
        """Store a boot and return its id.

        Returns None and changes nothing if the same boot (image, testbox, spec, series, purpose, k)
        exists.
        """

    def find(
        self, image: str, testbox: str, spec: str, series: str, numbers: BootNumbers
    ) -> list[BootRecord]:
        """Return the boots of an image on a testbox with one of these `numbers`, by k."""

    def values(self, boot: int) -> dict[tuple[str, str], list[float]]:
        """Return values of the boot's good runs, {(unit job, metric): one value per run}, in run
        order; the mean if a run has several.
        """

    def problems(self, boot: int, unit_job: str) -> list[str]:
        """Return why runs of this unit job are not good, in run order; warm-up runs are ignored."""

    def seconds(self, testbox: str, spec: str) -> float | None:
        """Return the mean seconds of the last 20 boots of this spec that came up on the testbox;
        None before the first.
        """

    def latest_facts(self, testbox: str, *, image: str | None = None) -> dict[str, Any]:
        """Return the facts of the testbox's latest successful boot, of this image if one is given;
        {} if there is none. Boots of a doctor's night do not count.
        """

    def latest_facts_of(self, testboxes: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return what `latest_facts` returns for each of `testboxes`."""
