"""Variants: one kernel to measure each."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    CommitFacts,
    Tree,
    Variant,
)
from swingbot.core.model.statuses import VariantOrigin
from swingbot_jobs.contract.trust import Trust


class Variants(Protocol):
    """Variants: one kernel to measure each."""

    def add(
        self,
        tree: Tree,
        facts: CommitFacts,
        build_key: str,
        origin: VariantOrigin,
        layout: int = 0,
        trust: Trust = "trusted",
    ) -> Variant:
        """The variant of this tree, commit, layout and trust with the tree's kconfig and compiler, stored by the first call; later calls return that one as it is."""

    def get(self, number: int) -> Variant:
        """A variant by number. Fails if there is none."""

    def is_trusted(self, tree: int, commit: str) -> bool:
        """Whether somebody who may say so said that `commit` of `tree` is to be trusted."""
