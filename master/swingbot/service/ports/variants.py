"""Variants: each is one kernel to measure."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import TRUSTED, CommitFacts, KernelTrust, Tree, Variant
from swingbot.core.model.statuses import VariantOrigin


class Variants(Protocol):
    """Variants: each is one kernel to measure."""

    def add(
        self,
        tree: Tree,
        facts: CommitFacts,
        build_key: str,
        origin: VariantOrigin,
        layout: int = 0,
        trust: KernelTrust = TRUSTED,
    ) -> Variant:
        """Return the variant of this tree, commit, layout and trust with the tree's kconfig and
        compiler. The first call stores it; a later one may only replace who vouches for it: a token
        by its tree or an operator.
        """

    def get(self, number: int) -> Variant:
        """Return a variant by number. Fails if it does not exist."""

    def is_trusted(self, tree: int, commit: str) -> bool:
        """Return whether an operator, not a token, vouched for `commit` of `tree`."""
