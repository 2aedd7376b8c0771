"""Comparisons and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from swingbot.core.model.records import (
    Comparison,
)


class Comparisons(Protocol):
    """Comparisons and their rows."""

    def add(
        self,
        *,
        kind: str,
        tree: int,
        base: int,
        head: int,
        boots: int,
        parts: Iterable[tuple[str, str]],
        change: int | None = None,
        first_k: int = 0,
        request_key: str | None = None,
    ) -> int:
        """Record the intent to compare; the same request key or change gives the same comparison again."""

    def get(self, number: int) -> Comparison | None: ...

    def open(self) -> list[Comparison]: ...

    def of_request(self, request_key: str) -> Comparison | None: ...

    def set_status(self, number: int, status: str, reason: str | None = None) -> None: ...

    def add_row(
        self, comparison: int, testbox: str, spec: str, detail: Mapping[str, Any]
    ) -> None: ...

    def rows(self, comparison: int) -> list[dict[str, Any]]:
        """The rows of a comparison as DESIGN section 8 words them, each with its `spec` added."""

    def extend(self, number: int, boots: int) -> None:
        """Ask for more boots a side of a comparison that runs: it is placed once more."""

    def renew(self, number: int, first_k: int) -> None:
        """Boot both kernels of a comparison that runs afresh, from `first_k` on; what it booted so far counts no more."""

    def latest_tip(self, tree: int) -> Comparison | None:
        """The comparison of the tree's latest tip that is measured."""

    def move_part(self, comparison: int, testbox: str, spec: str, other: str) -> bool:
        """Let `other` make the comparison's boots instead; False if it makes them already. Orders that nobody else wants are cancelled."""
