"""Anchors: a known kernel booted again on its testbox."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Comparison,
)


class Anchors(Protocol):
    """Anchors: a known kernel booted again on its testbox."""

    def of_testbox(self, testbox: str, *statuses: str) -> list[Comparison]: ...

    def kernel(self, testbox: str) -> tuple[int, int, str] | None:
        """(tree, variant, spec) of the testbox's last anchor, else of the base of its latest watch comparison: a kernel that is built."""

    def mark(self, number: int, mark: str) -> None:
        """An anchor with a mark is no measure of what the testbox is."""

    def asked_kernel(self, testbox: str) -> tuple[int, int, str] | None:
        """(tree, variant, spec) of the base of the oldest open request for this testbox: what a new one can be screened with."""
