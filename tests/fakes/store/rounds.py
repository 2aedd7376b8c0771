"""Changes that no round has seen, in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes.store.tables import Noun


class Rounds(Noun):
    def unseen(self) -> list[int]:
        return sorted(self.db.unseen)

    def note_unseen(self) -> None:
        self.db.unseen[self.db.next_id("unseen")] = None

    def mark_seen(self, changes: Sequence[int]) -> None:
        for change in changes:
            self.db.unseen.pop(change, None)
