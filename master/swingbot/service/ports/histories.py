"""What the tips of watched branches show as histories."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import TreeHistory


class Histories(Protocol):
    """What the tips of watched branches show as histories."""

    def put(self, history: TreeHistory) -> None:
        """Store what a metric's tips show; it replaces what there was, unless that knows a later tip."""

    def of(self, tree: int) -> list[TreeHistory]:
        """Those of a branch, by testbox, unit job and metric."""
