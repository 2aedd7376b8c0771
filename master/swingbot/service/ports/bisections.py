"""Bisections: points, requested boots, observations, belief, conclusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from swingbot.core.model.bisection import Observation, WantedBoot
from swingbot.core.model.conclusion import EndedSearch
from swingbot.core.model.records import (
    Bisection,
    NewBisection,
    Variant,
)
from swingbot.core.model.statuses import BisectionEnd, BisectionStatus


class BisectionPoint(NamedTuple):
    variant: Variant
    weight: float  # prior, including hints
    skipped: str | None  # why


class BisectionLife(NamedTuple):
    """Times are ISO 8601 in UTC."""

    asked: str
    ended: str | None
    reason: str | None


class Bisections(Protocol):
    """Bisections: points, requested boots, observations, belief, conclusion."""

    def add(self, new: NewBisection) -> int:
        """Store a bisection and its points, good end first, each with its prior weight, and return
        its number.

        An existing request key returns the existing bisection, unchanged.
        """

    def of_request(self, request_key: str) -> Bisection | None:
        """Return the bisection with this request key; None if it does not exist."""

    def get(self, number: int) -> Bisection | None:
        """Return a bisection by number; None if it does not exist."""

    def lock(self, number: int) -> None:
        """Let others that lock a bisection wait until this transaction ends."""

    def status(self, number: int) -> BisectionStatus | None:
        """Return the status, even of a bisection whose terms `get` cannot read; None if it does not
        exist.
        """

    def running(self) -> list[int]:
        """Return the numbers of running bisections, ascending, even of those that `get` cannot
        read.
        """

    def points(self, bisection: int) -> list[BisectionPoint]:
        """Return the points by index.

        A hint lowers a weight to no less than a tenth of the mean.
        """

    def wants(self, bisection: int) -> list[WantedBoot]:
        """Return the requested boots in the order of request, then by index and k."""

    def add_want(self, bisection: int, wanted: WantedBoot) -> None:
        """Request a boot. A second call for the same `key` changes nothing, not even the phase."""

    def move_want(self, bisection: int, idx: int, k: int, testbox: int) -> None:
        """Request boot `k` of point `idx` on another testbox (an index); only while it is not
        observed.
        """

    def set_testboxes(self, bisection: int, names: Sequence[str]) -> None:
        """Replace the names of the testboxes that share its boots."""

    def observations(self, bisection: int) -> list[Observation]:
        """Return the results of the requested boots, by index and k."""

    def add_observation(
        self,
        bisection: int,
        idx: int,
        k: int,
        boot: int | None,
        values: Sequence[float],
        skip: str | None,
    ) -> None:
        """Store the result of boot `k` of point `idx`: its values, or why it has none.

        The boot must have been requested. Only the first call counts.
        """

    def set_belief(self, bisection: int, belief: Mapping[str, Any]) -> None:
        """Store the belief for display; it affects no decision."""

    def conclude(
        self,
        bisection: int,
        status: BisectionEnd,
        conclusion: Mapping[str, Any],
        reason: str | None,
    ) -> None:
        """End a running bisection. One that has ended stays as it is."""

    def set_parent(self, bisection: int, parent: int, merged: str) -> None:
        """Record that `bisection` searches the branch that `merged`, a culprit of `parent`, merged.

        Only the first call counts.
        """

    def parent_of(self, bisection: int) -> tuple[int, str] | None:
        """Return (parent, merge) of a bisection of a merged branch; None for any other."""

    def life_of(self, bisection: int) -> BisectionLife:
        """Return when a bisection was asked for and when and why it ended."""

    def branches_of(self, bisection: int) -> list[tuple[Bisection, str]]:
        """Return (bisection of a merged branch, merge) for each one opened for this bisection's
        culprits, by number.
        """

    def conclusion(self, bisection: int) -> EndedSearch:
        """Return the conclusion of an ended bisection. Fails while it is running."""
