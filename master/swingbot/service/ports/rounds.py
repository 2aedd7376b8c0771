"""Which changes the rounds of the loop have seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Rounds(Protocol):
    """Which changes the rounds of the loop have seen."""

    def unseen(self) -> list[int]:
        """Committed changes that no complete round has seen, oldest first."""

    def note_unseen(self) -> None:
        """Ask for a complete round although no table has changed: settings or files may have."""

    def mark_seen(self, changes: Sequence[int]) -> None:
        """Delete what `unseen` returned when the round began. Calling it twice changes nothing."""
