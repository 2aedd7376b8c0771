"""What a bisection was shown and decided, step by step, and what people said to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from swingbot.core.bisect.journal import JournalStep
from swingbot.core.model.records import (
    Steer,
)
from swingbot.core.model.statuses import SteerAct


class Steering(Protocol):
    """What a bisection was shown and decided, step by step, and what people said to it."""

    def steps(self, bisection: int) -> list[JournalStep]:
        """Steps of the journal by number."""

    def last_step(self, bisection: int) -> tuple[int, str, dict[str, Any]] | None:
        """(number, digest, action) of the latest step; None before the first."""

    def add_step(
        self,
        bisection: int,
        number: int,
        engine: str,
        facts: Mapping[str, Any],
        digest: str,
        action: Mapping[str, Any],
    ) -> None:
        """Store step `number` with all that was shown to the engine and what it decided. Fails if there is one of that number."""

    def all(self, bisection: int) -> list[Steer]:
        """What people told a bisection, in order."""

    def add(
        self,
        bisection: int,
        act: SteerAct,
        points: Sequence[int],
        *,
        who: str,
        why: str | None,
        factor: float | None = None,
        boots: int | None = None,
    ) -> None:
        """Record what a person told a bisection; each call adds an entry."""

    def set_skipped(self, bisection: int, points: Sequence[int], why: str | None) -> None:
        """Set why these points are skipped; None: they are not any more."""

    def set_hint(self, bisection: int, points: Sequence[int], factor: float) -> None:
        """Set the factor of these points' prior weight; it replaces the hint before."""

    def reopen(self, bisection: int, *, max_boots: int, max_end_boots: int) -> None:
        """Back to running, without a conclusion and with other limits; what was observed stays."""
