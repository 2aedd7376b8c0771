"""Changes that rounds of the loop have seen."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot_db.store.rows import Rows


class Rounds(Rows):
    def unseen(self) -> list[int]:
        return [row.id for row in self.select("SELECT id FROM unseen ORDER BY id")]

    def note_unseen(self) -> None:
        self.execute("INSERT INTO unseen DEFAULT VALUES ON CONFLICT DO NOTHING")

    def mark_seen(self, changes: Sequence[int]) -> None:
        # By id, not up to the largest: a transaction may commit after a later one with a larger id.
        self.execute("DELETE FROM unseen WHERE id = ANY(:changes)", changes=list(changes))
