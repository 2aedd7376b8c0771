"""Attempts at orders, their dispatches, and the leases of testboxes."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Attempt,
)
from swingbot.core.model.statuses import AttemptState
from swingbot.core.plan.testbox_rules import LeaseExpiry


class Attempts(Protocol):
    """Attempts at orders, their dispatches, and the leases of testboxes."""

    def in_state(self, state: AttemptState, *, ingested: bool | None = None) -> list[Attempt]:
        """Attempts in this state by number, each with its latest dispatch; with `ingested`, only those whose outcome was ingested or was not."""

    def made(self, order: int) -> tuple[int, float, str | None]:
        """How many attempts an order has had, seconds since the last one ended (1e9 if none has), and the reason of the latest."""

    def add(self, order: int, number: int) -> int:
        """Begin attempt `number` of an order and return its id. Fails if the order has that number or has a running attempt."""

    def add_dispatch(
        self, order: int, attempt: int, attempt_number: int, number: int, builder: str
    ) -> None:
        """Record intent to hand an attempt to `builder`, as its dispatch `number`. Fails if the attempt has an open dispatch."""

    def open_dispatches(self) -> dict[str, int]:
        """How many dispatches each builder has that are not over; builders without one are absent."""

    def declare_dead(self, number: int, reason: str) -> None:
        """End a running attempt without an outcome and release its leases. An attempt that has ended keeps its state, and its leases go too."""

    def set_reason(self, number: int, reason: str) -> None:
        """Note of an attempt that has ended why its outcome is not the order's."""

    def mark_ingested(self, number: int) -> bool:
        """Claim the outcome of an attempt: true for the first caller, false for each later one."""

    def take_lease(self, testbox: str, attempt: int) -> bool:
        """Take the lease of a testbox for an attempt; false if the testbox is leased, by the same attempt too."""

    def leased(self) -> set[str]:
        """Names of leased testboxes."""

    def release_lease(self, attempt: int) -> None:
        """Release every lease of an attempt. A second call changes nothing."""

    def lapsed_leases(self) -> list[LeaseExpiry]:
        """Leases whose controller was not heard of in time; for a cluster only the row of the testbox that the order names."""
