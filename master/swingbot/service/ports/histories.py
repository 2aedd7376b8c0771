"""Histories of metrics over the tips of watched branches."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import TreeHistory


class Histories(Protocol):
    """Histories of metrics over the tips of watched branches."""

    def put(self, history: TreeHistory) -> None:
        """Store the history of a metric; it replaces the earlier one unless that has a later
        tip.
        """

    def of(self, tree: int) -> list[TreeHistory]:
        """Return the histories of a branch, by testbox, unit job and metric."""
