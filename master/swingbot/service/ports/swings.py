"""Swings among the rows of comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from swingbot.core.model.records import (
    Level,
    NewSwing,
    Swing,
)
from swingbot.core.model.statuses import SwingSource, SwingState


class Swings(Protocol):
    """Swings among the rows of comparisons."""

    def add(self, new: NewSwing) -> None:
        """Store a swing of one row of a comparison, with its reason as the alarm in its evidence.

        The first one of a row stays.
        """

    def in_state(self, *states: SwingState) -> list[Swing]:
        """Return the swings in one of these states, by number."""

    def set_state(self, number: int, state: SwingState, bisection: int | None = None) -> None:
        """Set the state; a given bisection replaces the earlier one, None keeps it."""

    def recent_levels(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int, most: int
    ) -> list[Level]:
        """Return the levels of this metric on at most `most` tips of the tree before comparison
        `before`, latest first.
        """

    def last(
        self,
        tree: int,
        testbox: str,
        unit_job: str,
        metric: str,
        *,
        before: int,
        refuted: Sequence[SwingSource] = ("history", "creep"),
    ) -> int | None:
        """Return the latest comparison before `before` in which this metric swung; None if there is
        none. Older levels are obsolete.

        A refuted swing counts if its source is in `refuted`: the testbox moved. Swings made by
        known culprits are ignored, because they leave the level unchanged.
        """

    def narrow(self, swing: int, anchor: int | None, upto: int | None, change_pct: float) -> None:
        """Restrict a suspected swing to the range between these variants (None: base, tip), with
        the change expected there. It loses its proof and counts as beyond the expected changes.
        """

    def set_proof(self, swing: int, proof: int) -> None:
        """Set the comparison whose pairs prove or refute a swing. Only the first call counts."""

    def weigh(
        self,
        swing: int,
        state: SwingState,
        evidence: Mapping[str, Any],
        change_pct: float | None = None,
    ) -> None:
        """Record the result of stage 2 for a suspected swing: state, further evidence, and the
        change in its own pairs. A swing that is not suspected stays as it is.
        """

    def of_bisection(self, bisection: int) -> list[Swing]:
        """Return the swings that a bisection was opened for, and those of its parent bisections, by
        number, except refuted and suspected ones.
        """
