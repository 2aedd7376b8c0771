"""Testboxes: whether they may work, and their current phase."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import Event, TestboxPhase, TestboxStatus
from swingbot.core.plan.testbox_rules import Screening
from swingbot_jobs.testbox.definition import Testbox


class Testboxes(Protocol):
    """Testboxes: whether they may work, and their current phase."""

    def sync(self, testboxes: Iterable[tuple[Testbox, Mapping[str, Any]]]) -> None:
        """Update the table from the testbox files: add new ones, update facts, mark those without a
        file as gone; a testbox whose file returns becomes active. A second call changes nothing.
        """

    def remembered(self, present: Collection[str]) -> dict[str, Testbox]:
        """Return the testboxes that are not in `present`, by name, as described by their last file.

        Those with unreadable facts are left out.
        """

    def states(self) -> dict[str, TestboxState]:
        """Return the state of each testbox by name, including gone ones: active, drained,
        quarantined or gone.
        """

    def set_state(self, name: str, state: TestboxState, reason: str | None) -> bool:
        """Set state and reason of a testbox.

        Returns False if it is gone, unknown, or already in that state.
        """

    def idle_seconds(self, testboxes: Collection[str], *, queue: bool = True) -> dict[str, float]:
        """Return the seconds since the last order of each testbox ended: 0 while one is open.

        Those that never had one are absent. Without `queue`, only running orders count as open.
        """

    def reasons(self) -> dict[str, tuple[TestboxState, str | None]]:
        """Return (state, reason) of each testbox by name, including gone ones."""

    def all(self) -> list[TestboxStatus]:
        """Return the status of each testbox by name; testboxes that never did anything are
        absent.
        """

    def lock(self, testbox: str) -> TestboxStatus:
        """Return the status of a testbox, locked until this transaction ends; a new one is idle."""

    def move(self, testbox: str, event: Event) -> TestboxStatus:
        """Apply `event` and return the resulting status.

        Locks as `lock` does. Time, reason and attempt are stored if anything changed.
        """

    def add_event(
        self, testbox: str, was: TestboxPhase, state: TestboxPhase, why: str, attempt: int | None
    ) -> None:
        """Add an entry to the history of a testbox; the last 5000 of each testbox are kept."""

    def screenings(self, testboxes: Collection[str]) -> dict[str, Screening]:
        """Return the progress of each testbox's screening; an empty one if it never did anything.

        Boots and anchors of a screened testbox are not counted.
        """

    def ask_screening(self, boots: Mapping[str, int]) -> None:
        """Set the number of anchor boots that each testbox needs, by name; pages show it."""

    def set_screened(self, testbox: str) -> None:
        """Record that the noise of a testbox is known. Only the first call counts."""

    def set_hardware(self, testbox: str, hardware: Mapping[str, Any], *, changed: bool) -> None:
        """Store the hardware of the machine.

        `changed`: screening starts again, and only later boots count.
        """

    def screen_again(self, testbox: str) -> None:
        """Restart the screening of a testbox unless it is screened: a person released it, and its
        earlier boots do not count.
        """
