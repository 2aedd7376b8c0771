"""What the tips of watched branches show as histories, in memory."""

from __future__ import annotations

from swingbot.core.model.records import TreeHistory
from tests.fakes.store.tables import Noun


class Histories(Noun):
    def put(self, history: TreeHistory) -> None:
        key = history.tree, history.testbox, history.unit_job, history.metric
        there = self.db.histories.get(key)
        if there is None or there.upto <= history.upto:
            self.db.histories[key] = history

    def of(self, tree: int) -> list[TreeHistory]:
        return [found for key, found in sorted(self.db.histories.items()) if key[0] == tree]
