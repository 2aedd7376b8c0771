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
        """Record the intent to compare the arms on each part (testbox, spec), and return the number
        of the comparison.

        An existing request key, or an existing change, returns the existing comparison, unchanged.
        `boots` counts per arm, numbered from `first_k` among the boots of this `purpose`. Fails if
        two arms have the same name.
        """

    def get(self, number: int) -> Comparison | None:
        """Return a comparison by number; None if it does not exist."""

    def lock(self, number: int) -> None:
        """Let others that lock a comparison wait until this transaction ends."""

    def open(self) -> list[Comparison]:
        """Return the comparisons that are waiting or running, by number."""

    def of_request(self, request_key: str) -> Comparison | None:
        """Return the comparison with this request key; None if it does not exist."""

    def set_status(self, number: int, status: ComparisonStatus, reason: str | None = None) -> None:
        """Set status and reason. A comparison that is done, failed or cancelled stays as it is."""

    def replace_rows(
        self, number: int, rows: Sequence[tuple[str, ComparisonRow]], unjudged: int = 0
    ) -> None:
        """Store rows, each with the spec that its boots ran, in place of those of an earlier look.

        Of rows with the same place the first one stays. `unjudged` counters have none. Fails if a
        swing refers to an earlier row.
        """

    def rows(self, comparison: int) -> list[ComparisonRow]:
        """Return the rows of a comparison, each with its `spec`, by testbox, unit job, metric, rule
        and arm.
        """

    def extend(self, number: int, boots: int) -> None:
        """Request `boots` per side of a running comparison, which waits to be placed again.

        Changes nothing if it has as many boots or is not running.
        """

    def renew(self, number: int, first_k: int) -> None:
        """Boot both kernels of a running comparison again, from boot `first_k` on; earlier boots do
        not count any more. A second call with the same `first_k` changes nothing.
        """

    def reopen(self, number: int, boots: int, arms: Sequence[Arm] = ()) -> None:
        """Request `boots` per arm, and append `arms`; the comparison waits to be placed again,
        whatever its status.

        Its rows remain until it is judged again. If it was done, that is one more look (`looks`).
        """

    def publish(self, number: int) -> None:
        """Let everybody read a comparison; a second call changes nothing."""

    def latest_tip(self, tree: int) -> Comparison | None:
        """Return the latest completed watch comparison of the tree; None if there is none."""

    def move_part(self, comparison: int, testbox: str, spec: str, other: str) -> bool:
        """Assign the boots of a part to `other`, and drop the orders of the old testbox; a running
        comparison waits again. Returns False if `other` already has that part, or the part does not
        exist.
        """
