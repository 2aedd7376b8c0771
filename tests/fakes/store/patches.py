"""Patches of watched branches in memory."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.core.model.patches import BranchPatch, Patch
from tests.fakes.store.tables import Noun


class Patches(Noun):
    def set_branch(self, tree: int, patches: Sequence[BranchPatch]) -> None:
        for each in patches:
            for patch in (each.patch, each.was):
                if patch is not None:
                    self.db.patches.setdefault(patch.commit, patch)
        self.db.branches[tree] = tuple(patches)

    def branch(self, tree: int) -> list[BranchPatch]:
        return list(self.db.branches.get(tree, ()))

    def get(self, commit: str) -> Patch | None:
        return self.db.patches.get(commit)
