"""Testboxes: whether they may work and what they do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from swingbot.core.model.statuses import TestboxState
from swingbot.core.model.testbox_state import Event, TestboxPhase, TestboxStatus
from swingbot.core.plan.testbox_rules import Screening
from swingbot_jobs.testbox.definition import Testbox


class Testboxes(Protocol):
    """Testboxes: whether they may work and what they do."""

    def sync(self, boxes: Iterable[tuple[Testbox, Mapping[str, Any]]]) -> None:
        """Make the table agree with the testbox files: add new ones, update facts, mark those without a file as gone; one whose file is back is active. A second call changes nothing."""

    def remembered(self, present: Collection[str]) -> dict[str, Testbox]:
        """Testboxes other than `present` ones by name, as their last file described them. One whose facts cannot be read is left out."""

    def states(self) -> dict[str, TestboxState]:
        """State of each testbox by name, gone ones included: active, drained, quarantined or gone."""

    def set_state(self, name: str, state: TestboxState, reason: str | None) -> bool:
        """Set state and reason of a testbox; false if it is gone, unknown, or was so already."""

    def idle_seconds(self, testbox: str, *, queue: bool = True) -> float | None:
        """Seconds since the last order of a testbox ended: 0 while one is open, None if it never had one. Without `queue` only running orders count as open."""

    def reasons(self) -> dict[str, tuple[TestboxState, str | None]]:
        """(state, reason) of each testbox, by name, gone ones included."""

    def all(self) -> list[TestboxStatus]:
        """What each testbox does, by name; one that never did anything is absent."""

    def lock(self, testbox: str) -> TestboxStatus:
        """What a testbox does now; a new one idles. Nobody else changes it until this transaction ends."""

    def move(self, testbox: str, event: Event) -> TestboxStatus:
        """Apply `event` and return the testbox after it. Locks as `lock` does. Time, reason and attempt are kept if anything changed."""

    def add_event(
        self, testbox: str, was: TestboxPhase, state: TestboxPhase, why: str, attempt: int | None
    ) -> None:
        """Add an entry to the history of a testbox; of each the last 5000 are kept."""

    def screening(self, testbox: str) -> Screening:
        """How far the screening of a testbox is; an empty one if it never did anything."""

    def ask_screening(self, testbox: str, boots: int) -> None:
        """Set how many boots of an anchor a testbox has to make; pages show it."""

    def set_screened(self, testbox: str) -> None:
        """Note that the noise of a testbox is known. The first call counts."""

    def set_hardware(self, testbox: str, hardware: Mapping[str, Any], *, changed: bool) -> None:
        """Note what the machine is. `changed`: screening starts again, and only later boots count."""

    def screen_again(self, testbox: str) -> None:
        """Start the screening of a testbox again unless it is screened: a person let it work again, and what it showed so far counts no more."""
