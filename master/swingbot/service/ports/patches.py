"""Patches of watched branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot.core.model.patches import BranchPatch, Patch


class Patches(Protocol):
    """Patches of watched branches."""

    def set_branch(self, tree: int, patches: Sequence[BranchPatch]) -> None:
        """Store what a branch consists of now, oldest first; it replaces what there was. The patches themselves stay known."""

    def branch(self, tree: int) -> list[BranchPatch]:
        """What the branch consists of since its last move, oldest first, those that were dropped at the end; empty before the first."""

    def get(self, commit: str) -> Patch | None:
        """A commit of any watched branch as a patch, whether it is still there or not; None if there was none."""
