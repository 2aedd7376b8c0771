"""Trees and what changed in their branches."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Change,
    Tree,
)


class Trees(Protocol):
    """Trees and what changed in their branches."""

    def add(self, tree: Tree) -> Tree: ...

    def all(self) -> list[Tree]: ...

    def named(self, name: str) -> Tree | None: ...

    def get(self, number: int) -> Tree: ...

    def remove(self, number: int) -> None: ...

    def note_poll(self, number: int, problem: str | None) -> None: ...

    def add_change(self, tree: int, kind: str, old: str, new: str) -> None: ...

    def changes_to_compare(self) -> list[Change]: ...
