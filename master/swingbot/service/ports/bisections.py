"""Bisections: points, wants, observations, belief, conclusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from swingbot.core.model.records import (
    Bisection,
    Seen,
    Variant,
    Want,
)


class Bisections(Protocol):
    """Bisections: points, wants, observations, belief, conclusion."""

    def add(
        self,
        *,
        tree: int,
        origin: str,
        good: str,
        bad: str,
        testbox: str,
        spec: str,
        series: str | None,
        unit_job: str,
        metric: str,
        policy: Mapping[str, Any],
        points: Sequence[tuple[Variant, float]],
        request_key: str,
    ) -> int:
        """Record a bisection and its points; the same request key gives the same bisection again. `series` None: its own."""

    def get(self, number: int) -> Bisection | None: ...

    def running(self) -> list[Bisection]: ...

    def points(self, bisection: int) -> list[tuple[Variant, float, str | None]]:
        """(variant, prior weight with the hints of people, why a person said to skip it) by index."""

    def wants(self, bisection: int) -> list[Want]:
        """Everything this bisection asked for."""

    def add_want(
        self, bisection: int, idx: int, k: int, phase: str, layout: int = 0, box: int = 0
    ) -> None: ...

    def observations(self, bisection: int) -> list[Seen]:
        """All that was learned."""

    def add_observation(
        self,
        bisection: int,
        idx: int,
        k: int,
        boot: int | None,
        values: Sequence[float],
        skip: str | None,
    ) -> None: ...

    def set_belief(self, bisection: int, belief: Mapping[str, Any]) -> None: ...

    def conclude(
        self, bisection: int, status: str, conclusion: Mapping[str, Any], reason: str | None
    ) -> None: ...

    def set_parent(self, bisection: int, parent: int, merged: str) -> None:
        """`bisection` searches the branch that `merged`, the culprit of `parent`, brought in."""

    def parent_of(self, bisection: int) -> tuple[int, str] | None: ...

    def life_of(self, bisection: int) -> tuple[str, str | None, str | None]:
        """(when it was asked for, when it ended, the reason it gave)."""

    def branches_of(self, bisection: int) -> list[tuple[Bisection, str]]:
        """(bisection of a merged branch, merge) of all that were opened for this one's culprits."""

    def conclusion(self, bisection: int) -> dict[str, Any]: ...
