"""Trees and the changes of their branches."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Change,
    Tree,
)
from swingbot.core.model.statuses import ChangeKind


class Trees(Protocol):
    """Trees and the changes of their branches."""

    def add(self, tree: Tree) -> Tree:
        """Store `tree` and return it with its number; its own `id` is ignored.

        Fails if a watched tree has this name; the name of a removed one is available.
        """

    def all(self) -> list[Tree]:
        """Return the watched trees by number."""

    def named(self, name: str) -> Tree | None:
        """Return the watched tree with this name; None if there is none."""

    def get(self, number: int) -> Tree:
        """Return a tree by number, including removed ones. Fails if it does not exist."""

    def remove(self, number: int) -> None:
        """Stop watching a tree; its rows stay. A second call changes nothing."""

    def note_poll(self, number: int, problem: str | None) -> None:
        """Set the time of the last poll, and why it failed; None: it succeeded."""

    def add_change(self, tree: int, kind: ChangeKind, old: str, new: str) -> None:
        """Record that the branch moved from `old` to `new`, and make `new` its tip.

        A second call adds no change.
        """

    def changes_to_compare(self) -> list[Change]:
        """Return the changes of watched trees without a comparison, oldest first."""
