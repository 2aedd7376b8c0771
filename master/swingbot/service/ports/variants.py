"""Variants: each is one kernel to measure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from swingbot.core.access.tokens import EndedToken
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

    def note_sent(self, token: int, commits: Collection[str]) -> None:
        """Record that the token sent these commits, unless another one is recorded for them."""

    def sent_by(self, token: int, commits: Collection[str]) -> set[str]:
        """Return those of `commits` that are recorded as sent by the token."""

    def unvouched(self) -> dict[int, EndedToken]:
        """Return, by number, the open orders of kernels that are trusted only because of a token
        that was revoked or has expired, with that token.

        An order is for contents: it is left out if another variant with the same contents is
        trusted because of its tree, an operator or a valid token.
        """
