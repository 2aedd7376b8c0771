"""Runs and their samples, as parsed from raw results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from swingbot.core.model.records import (
    StoredBoot,
    StoredRun,
)
from swingbot.core.raw.changes import ChangedValues
from swingbot_jobs.reading.result import ParsedRun


class Runs(Protocol):
    """Runs and their samples, as parsed from raw results."""

    def add(self, boot: int, runs: Sequence[ParsedRun], parsers: Mapping[str, str]) -> None:
        """Remember the runs of a boot, each under its result root. `parsers` names the code that read them, by unit job.

        The transaction does not wait for the disk: outcome and raw files are on it already, so that after a power cut the
        same is taken in again; whatever is decided from these rows is committed after them, and waits.
        """

    def boots_with_results(
        self, after: int, most: int, program: str | None = None
    ) -> list[StoredBoot]:
        """At most `most` boots whose results came back, with ids above `after`, by id; with `program`, those that were to run it."""

    def count_boots_with_results(self, program: str | None = None) -> int:
        """How many boots `boots_with_results` has in all."""

    def of_boot(self, boot: int, *, lock: bool = False) -> list[StoredRun]:
        """Runs of a boot with their samples, by id. `lock`: nobody else changes these runs until the transaction ends."""

    def replace(
        self, old: StoredRun, new: ParsedRun, parser: str, changes: Mapping[str, ChangedValues]
    ) -> None:
        """Put what a mended parser read in place of what was remembered; note the change of status, reason or samples if there is one."""

    def requests_of_boots(self, boots: Iterable[int]) -> tuple[list[int], list[int]]:
        """(comparisons, bisections) that wanted the orders of these boots, each sorted."""
