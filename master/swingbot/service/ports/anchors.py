"""Anchors: a known kernel booted again on its testbox."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Comparison,
)
from swingbot.core.model.statuses import ComparisonStatus


class Anchors(Protocol):
    """Anchors: a known kernel booted again on its testbox."""

    def of_testbox(self, testbox: str, *statuses: ComparisonStatus) -> list[Comparison]:
        """Anchors of a testbox in one of these statuses, by number; the `reason` of one is its mark."""

    def kernel(self, testbox: str) -> tuple[int, int, str] | None:
        """(tree, variant, spec) of the testbox's last anchor, else of the base of its latest watch comparison: a kernel that is built. None before either."""

    def mark(self, number: int, mark: str) -> None:
        """Mark an anchor: it is no measure of what the testbox is. The first mark stays; other comparisons are not touched."""

    def asked_kernel(self, testbox: str) -> tuple[int, int, str] | None:
        """(tree, variant, spec) of the base of the oldest open request for this testbox, else of the good end of its oldest running bisection: what a new testbox can be screened with."""
