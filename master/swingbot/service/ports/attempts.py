"""Attempts at orders, their dispatches, and the leases of testboxes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

from swingbot.core.access.uploads import UploadUsage
from swingbot.core.model.dispatch import OrderFacts
from swingbot.core.model.records import (
    Attempt,
)
from swingbot.core.model.statuses import AttemptState
from swingbot.core.plan.deliveries import StoredAttempt
from swingbot.core.plan.testbox_rules import LeaseExpiry


class AttemptsMade(NamedTuple):
    """The attempts at an order so far."""

    number: int
    ago: float  # seconds since the last one ended; 1e9 if none has
    reason: str | None  # of the latest


class Attempts(Protocol):
    """Attempts at orders, their dispatches, and the leases of testboxes."""

    def find(self, attempt: int, *, lock: bool = False) -> StoredAttempt | None:
        """Return an attempt; with `lock`, nobody else changes it until the transaction ends."""

    def end(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        """End a running attempt with its outcome."""

    def keep_late(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        """Store the outcome of an attempt that was declared dead; it does not count."""

    def order_facts(self, attempt: int) -> OrderFacts | None:
        """Return what the order document of an attempt says; None if there is no such attempt."""

    def uploads(self, attempt: int, sha256: str) -> UploadUsage | None:
        """Return the uploads of an attempt apart from this file; None if there is no such
        attempt.
        """

    def add_upload(self, attempt: int, sha256: str, size: int) -> None:
        """Count a file of `size` bytes. The same file counts once."""

    def in_state(self, state: AttemptState, *, ingested: bool | None = None) -> list[Attempt]:
        """Return the attempts in this state by number, each with its latest dispatch.

        `ingested` selects those whose outcome was, or was not, ingested.
        """

    def made(self, order: int) -> AttemptsMade:
        """Return the attempts at an order so far."""

    def made_of(self, orders: Collection[int]) -> dict[int, AttemptsMade]:
        """Return what `made` returns, for each of `orders`."""

    def add(self, order: int, number: int) -> int:
        """Start attempt `number` of an order and return its id.

        Fails if the order has this number already or has a running attempt.
        """

    def declare_dead(self, number: int, reason: str) -> None:
        """End a running attempt without an outcome and release its leases.

        An ended attempt keeps its state, but its leases are released too.
        """

    def set_reason(self, number: int, reason: str) -> None:
        """Record why the outcome of an ended attempt is not that of the order."""

    def mark_ingested(self, number: int) -> bool:
        """Claim the outcome of an attempt: True for the first caller, False for later ones."""

    def take_lease(self, testbox: str, attempt: int) -> bool:
        """Take the lease of a testbox for an attempt.

        Returns False if the testbox is leased, even by the same attempt.
        """

    def leased(self) -> set[str]:
        """Return the names of leased testboxes."""

    def release_lease(self, attempt: int) -> None:
        """Release every lease of an attempt. A second call changes nothing."""

    def lapsed_leases(self, longest: float) -> list[LeaseExpiry]:
        """Return the leases whose controller was silent for too long; for a cluster only the row of
        the testbox that the order names.

        A lease that is valid for more than `longest` seconds was taken before the clock was set
        back, and was not renewed since.
        """

    def clock(self) -> float:
        """Return the time of the store's clock in seconds."""

    def restart_leases(self, seconds: float) -> None:
        """Make every lease that has a controller valid for `seconds` from now."""
