"""Patches of watched branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot.core.model.patches import BranchPatch, Patch


class Patches(Protocol):
    """Patches of watched branches."""

    def set_branch(self, tree: int, patches: Sequence[BranchPatch]) -> None:
        """Store the current patches of a branch, oldest first, replacing the earlier list.

        The patches themselves stay stored.
        """

    def branch(self, tree: int) -> list[BranchPatch]:
        """Return the patches of the branch since its last move, oldest first, dropped ones last;
        empty before the first move.
        """

    def get(self, commit: str) -> Patch | None:
        """Return a commit that any watched branch has or had, as a patch; None if there was
        none.
        """
