"""Swings among the rows of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from swingbot.core.model.records import (
    Level,
    NewSwing,
    Swing,
)
from swingbot.core.model.statuses import SwingState


class Swings(Protocol):
    """Swings among the rows of comparisons."""

    def add(self, new: NewSwing) -> None:
        """Store a swing of one row of a comparison, with its reason as the alarm in its evidence. The first one of a row stays."""

    def in_state(self, *states: SwingState) -> list[Swing]:
        """Swings in one of these states, by number."""

    def set_state(self, number: int, state: SwingState, bisection: int | None = None) -> None:
        """Set the state; a bisection given here replaces the one before, None keeps it."""

    def recent_levels(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int, most: int
    ) -> list[Level]:
        """What this metric measured on earlier tips of the tree, before comparison `before`, the latest first; `most` of them."""

    def last(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int
    ) -> int | None:
        """The latest comparison before `before` in which this metric swung or was suspected because of its history; None if there is none. Older levels say nothing any more. Where known culprits made it, nothing has moved."""

    def narrow(self, swing: int, anchor: int | None, upto: int | None, change_pct: float) -> None:
        """Look for a suspected swing between these variants alone (None: base, tip), for the change that is expected there; it has no proof then. It counts as one beyond what is expected."""

    def set_proof(self, swing: int, proof: int) -> None:
        """Name the comparison whose pairs prove or refute a swing. The first call counts."""

    def weigh(
        self,
        swing: int,
        state: SwingState,
        evidence: Mapping[str, Any],
        change_pct: float | None = None,
    ) -> None:
        """Record what stage 2 said of a suspected swing: state, further evidence, and the change of its own pairs. A swing that is not suspected stays as it is."""

    def of_bisection(self, bisection: int) -> list[Swing]:
        """Swings that a bisection was opened for, and those of the bisections above it whose merges led to it, by number; refuted and suspected ones excepted."""
