"""Testboxes: whether they may work and what they do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol

from swingbot.core.model.box import Box, Event
from swingbot.core.plan.boxes import Screening
from swingbot_jobs.testbox.box import Testbox


class Testboxes(Protocol):
    """Testboxes: whether they may work and what they do."""

    def sync(self, boxes: Iterable[tuple[Testbox, Mapping[str, Any]]]) -> None:
        """Make the table agree with the files: new boxes appear, changed facts are noted, boxes without a file are gone."""

    def remembered(self, present: Collection[str]) -> dict[str, Testbox]:
        """Testboxes other than `present` ones by name, as their last file described them. One whose facts cannot be read is left out."""

    def states(self) -> dict[str, str]: ...

    def set_state(self, name: str, state: str, reason: str | None) -> bool:
        """False if there is no such testbox or it was so already."""

    def idle_seconds(self, testbox: str, *, queue: bool = True) -> float | None:
        """How long a testbox has had nothing to do; 0 while it has, None if nothing ever was asked of it. Without `queue` what waits for
        it does not count, because it cannot begin.
        """

    def reasons(self) -> dict[str, tuple[str, str | None]]:
        """State of each testbox, and why."""

    def all(self) -> list[Box]: ...

    def lock(self, testbox: str) -> Box:
        """As it is now, and nobody else changes it before this transaction ends; a new one idles."""

    def move(self, testbox: str, event: Event) -> Box:
        """The testbox after `event`; kept with time, reason and attempt if that changed anything."""

    def add_event(
        self, testbox: str, was: str, state: str, why: str, attempt: int | None
    ) -> None: ...

    def screening(self, testbox: str) -> Screening: ...

    def ask_screening(self, testbox: str, boots: int) -> None:
        """How many boots of an anchor it has to make; for pages."""

    def set_screened(self, testbox: str) -> None: ...

    def set_hardware(self, testbox: str, hardware: Mapping[str, Any], *, changed: bool) -> None:
        """Note what the machine is; `changed`: it has to be screened anew."""

    def screen_again(self, testbox: str) -> None:
        """A person let it work again: what it showed so far counts no more, unless it has been screened."""
