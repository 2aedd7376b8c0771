"""Comparisons and experiments, their arms and their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.records import (
    Arm,
    Comparison,
    NewComparison,
)
from swingbot.core.model.statuses import ComparisonStatus


class Comparisons(Protocol):
    """Comparisons and their rows."""

    def add(self, new: NewComparison) -> int:
        """Record the intent to compare the arms on each part (testbox, spec), and return the comparison's number.

        The same request key, or the same change, gives the same comparison again, as it is. `boots` are of each arm, numbered
        from `first_k` among the boots of this `purpose`. Fails if two arms have one name.
        """

    def get(self, number: int) -> Comparison | None:
        """A comparison by number; None if there is none."""

    def open(self) -> list[Comparison]:
        """Comparisons that are waiting or running, by number."""

    def of_request(self, request_key: str) -> Comparison | None:
        """The comparison of this request key; None if there is none."""

    def set_status(self, number: int, status: ComparisonStatus, reason: str | None = None) -> None:
        """Set status and reason. One that is done, failed or cancelled stays as it is."""

    def add_row(self, comparison: int, spec: str, row: ComparisonRow) -> None:
        """Store a row, of boots that ran `spec`. The first one stays; later calls change nothing."""

    def rows(self, comparison: int) -> list[ComparisonRow]:
        """Rows of a comparison, each with its `spec`, by testbox, unit job, metric, rule and arm."""

    def extend(self, number: int, boots: int) -> None:
        """Ask for `boots` a side of a running comparison: it waits to be placed again. Fewer boots than it has, or one that does not run: nothing changes."""

    def renew(self, number: int, first_k: int) -> None:
        """Boot both kernels of a running comparison afresh, from boot `first_k` on; what it booted so far counts no more. A second call with the same `first_k` changes nothing."""

    def reopen(self, number: int, boots: int, arms: Sequence[Arm] = ()) -> None:
        """Ask for `boots` of each arm, with `arms` behind those it has; it waits to be placed again, whatever became of it.

        Its rows are withdrawn. Where it was done, it will be judged once more (`looks`). Fails if a swing is of one of its rows.
        """

    def latest_tip(self, tree: int) -> Comparison | None:
        """The latest watch comparison of the tree that is done; None if there is none."""

    def move_part(self, comparison: int, testbox: str, spec: str, other: str) -> bool:
        """Let `other` make the boots of a part instead, and stop wanting the orders of the old one; a running comparison waits again. False if `other` makes them already, or there is no such part."""
