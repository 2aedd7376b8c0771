"""Swings among the rows of comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from swingbot.core.model.records import (
    Level,
    Swing,
)


class Swings(Protocol):
    """Swings among the rows of comparisons."""

    def add(
        self,
        comparison: int,
        testbox: str,
        unit_job: str,
        metric: str,
        direction: str,
        change_pct: float,
        state: str,
        *,
        source: str = "base",
        anchor: int | None = None,
        reason: str | None = None,
    ) -> None: ...

    def in_state(self, *states: str) -> list[Swing]: ...

    def set_state(self, number: int, state: str, bisection: int | None = None) -> None: ...

    def recent_levels(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int, most: int
    ) -> list[Level]:
        """What earlier tips of the tree measured, the latest first."""

    def last(
        self, tree: int, testbox: str, unit_job: str, metric: str, *, before: int
    ) -> int | None:
        """The latest earlier comparison in which this metric swung, or was suspected because of its history: older levels say nothing any more."""

    def set_proof(self, swing: int, proof: int) -> None: ...

    def weigh(
        self, swing: int, state: str, evidence: Mapping[str, Any], change_pct: float | None = None
    ) -> None:
        """Record what stage 2 said of a suspected swing; the change is from then on that of its own pairs."""

    def of_bisection(self, bisection: int) -> list[Swing]:
        """Swings that it was opened for; those of the bisection whose blamed merge it searches are its own too."""
