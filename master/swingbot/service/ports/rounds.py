"""Changes seen and not yet seen by rounds of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Rounds(Protocol):
    """Changes seen and not yet seen by rounds of the loop."""

    def unseen(self) -> list[int]:
        """Return the committed changes that no complete round has seen, oldest first."""

    def note_unseen(self) -> None:
        """Request a complete round although no table has changed, because settings or files may
        have.
        """

    def mark_seen(self, changes: Sequence[int]) -> None:
        """Delete the changes that `unseen` returned when the round began.

        A second call changes nothing.
        """
