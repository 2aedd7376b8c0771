"""Anchors: a known kernel booted again on its testbox."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from swingbot.core.model.records import (
    Comparison,
)
from swingbot.core.model.statuses import ComparisonStatus
from swingbot.core.moderation.aa_record import AnchorBoots


class AnchorKernel(NamedTuple):
    tree: int
    variant: int
    spec: str


class Anchors(Protocol):
    """Anchors: a known kernel booted again on its testbox."""

    def of_testbox(self, testbox: str, *statuses: ComparisonStatus) -> list[Comparison]:
        """Return the anchors of a testbox in one of these statuses, by number; the `reason` of an
        anchor is its mark.
        """

    def kernel(self, testbox: str) -> AnchorKernel | None:
        """Return the kernel of the testbox's last anchor, or of the base of its latest
        watch comparison, both of which are built; without either, that of its last night, whose
        runs may be shortened. None without any.
        """

    def boots(self, testbox: str) -> list[AnchorBoots]:
        """Return the last 1000 completed anchors of a testbox, by number, with their boots that
        came up.
        """

    def mark(self, number: int, mark: str) -> None:
        """Mark an anchor as no measure of the testbox.

        The first mark stays; other comparisons are not touched.
        """

    def set_answer(self, number: int, answer: Mapping[str, Any]) -> None:
        """Store what a night of anchor boots says about its testbox."""

    def asked_kernel(self, testbox: str) -> AnchorKernel | None:
        """Return a kernel to screen a new testbox with: the base of its oldest open request, or
        the good end of its oldest running bisection; None without either.
        """
