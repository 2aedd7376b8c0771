"""Runs and their samples, as parsed from raw results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from swingbot.core.model.records import (
    StoredBoot,
    StoredRun,
)
from swingbot.core.raw.changes import ChangedValues
from swingbot.core.results.metric_names import MetricNames
from swingbot_jobs.reading.result import ParsedRun


class Runs(Protocol):
    """Runs and their samples, as parsed from raw results."""

    def add(self, boot: int, runs: Sequence[ParsedRun], parsers: Mapping[str, str]) -> None:
        """Store the runs of a boot, each under its result root. `parsers` has the version of the
        code that parsed them, by unit job.

        The transaction does not wait for the disk. Outcome and raw files are already on it, so that
        after a power failure they are ingested again; decisions based on these rows are committed
        after them, and wait for the disk.
        """

    def metric_names(self, boot: int, runs: Sequence[ParsedRun]) -> dict[str, MetricNames]:
        """Return the names of metrics by unit job of `runs`, as they count for the boot's kernel.

        A name that a trusted kernel reported is free for all kernels, and one that others reported
        for those alone.
        """

    def boots_with_results(
        self, after: int, most: int, program: str | None = None
    ) -> list[StoredBoot]:
        """Return at most `most` boots with results and ids above `after`, by id; with `program`,
        those whose spec has it.
        """

    def count_boots_with_results(self, program: str | None = None) -> int:
        """Return how many boots `boots_with_results` has in total."""

    def of_boot(self, boot: int, *, lock: bool = False) -> list[StoredRun]:
        """Return the runs of a boot with their samples, by id.

        `lock`: lock these runs until the transaction ends.
        """

    def replace(
        self, old: StoredRun, new: ParsedRun, parser: str, changes: Mapping[str, ChangedValues]
    ) -> None:
        """Replace a stored run by the result of the current parser; record the change of status,
        reason or samples if there is one.
        """

    def requests_of_boots(self, boots: Iterable[int]) -> tuple[list[int], list[int]]:
        """Return (comparisons, bisections) that needed the orders of these boots, each sorted."""
