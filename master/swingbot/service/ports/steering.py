"""Journal of each bisection: input and decision of each step, and the acts of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from swingbot.core.model.records import (
    Steer,
)
from swingbot.core.model.statuses import SteerAct

if TYPE_CHECKING:  # the engine needs numpy and scipy, its journal as a type does not
    from swingbot.core.bisect.tell.journal import JournalStep


class Steering(Protocol):
    """Journal of each bisection: input and decision of each step, and the acts of people."""

    def steps(self, bisection: int) -> list[JournalStep]:
        """Return the steps of the journal by number."""

    def last_step(self, bisection: int) -> JournalStep | None:
        """Return the latest step of the journal; None before the first."""

    def add_step(
        self,
        bisection: int,
        number: int,
        engine: str,
        facts: Mapping[str, Any],
        digest: str,
        action: Mapping[str, Any],
    ) -> None:
        """Store step `number` with its complete input and its decision.

        Fails if this number exists.
        """

    def all(self, bisection: int) -> list[Steer]:
        """Return the acts of people on a bisection, in order."""

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
        """Record an act of a person on a bisection; each call adds an entry."""

    def set_skipped(self, bisection: int, points: Sequence[int], why: str | None) -> None:
        """Set why these points are skipped; None ends the skip."""

    def set_hint(self, bisection: int, points: Sequence[int], factor: float) -> None:
        """Set the factor of these points' prior weight, replacing an earlier hint."""

    def reopen(self, bisection: int, *, max_boots: int, max_end_boots: int) -> None:
        """Set a bisection back to running, without a conclusion and with other limits; its
        observations stay.
        """
