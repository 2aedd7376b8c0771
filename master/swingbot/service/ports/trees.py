"""Trees and what changed in their branches."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Change,
    Tree,
)
from swingbot.core.model.statuses import ChangeKind


class Trees(Protocol):
    """Trees and what changed in their branches."""

    def add(self, tree: Tree) -> Tree:
        """Store `tree` and return it with its number; its own `id` is ignored. Fails if a watched tree has this name; the name of a removed one is free."""

    def all(self) -> list[Tree]:
        """Watched trees by number."""

    def named(self, name: str) -> Tree | None:
        """The watched tree of this name; None if there is none."""

    def get(self, number: int) -> Tree:
        """A tree by number, removed ones included. Fails if there is none."""

    def remove(self, number: int) -> None:
        """Stop watching a tree; its rows stay. A second call changes nothing."""

    def note_poll(self, number: int, problem: str | None) -> None:
        """Set the time of the last poll, and why it failed; None: it worked."""

    def add_change(self, tree: int, kind: ChangeKind, old: str, new: str) -> None:
        """Record that the branch moved from `old` to `new`, and make `new` its tip. A second call adds no change."""

    def changes_to_compare(self) -> list[Change]:
        """Changes of watched trees that have no comparison, oldest first."""
