"""Attempts at orders, their dispatches, and the leases of testboxes."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Attempt,
)
from swingbot.core.plan.boxes import Lapse


class Attempts(Protocol):
    """Attempts at orders, their dispatches, and the leases of testboxes."""

    def in_state(self, state: str, *, ingested: bool | None = None) -> list[Attempt]: ...

    def made(self, order: int) -> tuple[int, float, str | None]:
        """How many attempts an order has had, seconds since the last one ended, and why that one failed."""

    def add(self, order: int, number: int) -> int: ...

    def add_dispatch(
        self, order: int, attempt: int, attempt_number: int, number: int, builder: str
    ) -> None: ...

    def open_dispatches(self) -> dict[str, int]:
        """How many dispatches each builder has that are not over."""

    def declare_dead(self, number: int, reason: str) -> None: ...

    def set_reason(self, number: int, reason: str) -> None:
        """Say of an attempt that has ended why its outcome is not the order's."""

    def mark_ingested(self, number: int) -> bool:
        """True for the one caller that may ingest this attempt's outcome."""

    def take_lease(self, testbox: str, attempt: int) -> bool: ...

    def leased(self) -> set[str]: ...

    def release_lease(self, attempt: int) -> None: ...

    def lapsed_leases(self) -> list[Lapse]: ...
