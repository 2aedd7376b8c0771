"""Variants: each is one kernel to measure."""

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
    """Variants: each is one kernel to measure."""

    def add(
        self,
        tree: Tree,
        facts: CommitFacts,
        build_key: str,
        origin: VariantOrigin,
        layout: int = 0,
        trust: Trust = "trusted",
    ) -> Variant:
        """Return the variant of this tree, commit, layout and trust with the tree's kconfig and
        compiler. The first call stores it; later calls return it unchanged.
        """

    def get(self, number: int) -> Variant:
        """Return a variant by number. Fails if it does not exist."""

    def is_trusted(self, tree: int, commit: str) -> bool:
        """Return whether an operator vouched for `commit` of `tree`."""
