"""Bisections: points, wants, observations, belief, conclusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.records import (
    Bisection,
    NewBisection,
    Variant,
)
from swingbot.core.model.statuses import BisectionEnd, BisectionStatus


class Bisections(Protocol):
    """Bisections: points, wants, observations, belief, conclusion."""

    def add(self, new: NewBisection) -> int:
        """Record a bisection and its points, good end first, each with its prior weight, and return its number.

        The same request key gives the same bisection again, as it is.
        """

    def get(self, number: int) -> Bisection | None:
        """A bisection by number; None if there is none."""

    def status(self, number: int) -> BisectionStatus | None:
        """How it stands, even of one whose terms `get` cannot read; None if there is none."""

    def running(self) -> list[int]:
        """The numbers of running bisections, ascending, even of those that `get` cannot read."""

    def points(self, bisection: int) -> list[tuple[Variant, float, str | None]]:
        """(variant, prior weight with the hints of people, why a person said to skip it) by index. A hint lowers a weight to a tenth of the mean at least."""

    def wants(self, bisection: int) -> list[WantedBoot]:
        """Boots that a bisection asked for, in the order in which it asked, then by index and k."""

    def add_want(self, bisection: int, wanted: WantedBoot) -> None:
        """Ask for a boot. A second call for the same `key` changes nothing, not even the phase."""

    def observations(self, bisection: int) -> list[Observation]:
        """What came of the boots that it asked for, by index and k."""

    def add_observation(
        self,
        bisection: int,
        idx: int,
        k: int,
        boot: int | None,
        values: Sequence[float],
        skip: str | None,
    ) -> None:
        """Store what came of boot `k` of point `idx`: values, or why there are none. It must have been asked for. The first call counts."""

    def set_belief(self, bisection: int, belief: Mapping[str, Any]) -> None:
        """Store the belief for pages; it decides nothing."""

    def conclude(
        self,
        bisection: int,
        status: BisectionEnd,
        conclusion: Mapping[str, Any],
        reason: str | None,
    ) -> None:
        """End a running bisection. One that has ended stays as it is."""

    def set_parent(self, bisection: int, parent: int, merged: str) -> None:
        """Note that `bisection` searches the branch that `merged`, the culprit of `parent`, brought in. The first call counts."""

    def parent_of(self, bisection: int) -> tuple[int, str] | None:
        """(parent, merge) of a bisection of a merged branch; None for any other."""

    def life_of(self, bisection: int) -> tuple[str, str | None, str | None]:
        """(when it was asked for, when it ended or None, the reason it gave or None); times are ISO 8601 in UTC."""

    def branches_of(self, bisection: int) -> list[tuple[Bisection, str]]:
        """(bisection of a merged branch, merge) of all that were opened for this one's culprits, by number."""

    def conclusion(self, bisection: int) -> dict[str, Any]:
        """The conclusion of a bisection that has ended, as docs/json.md gives it. Fails while it runs."""
