"""Orders, and who wants them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from swingbot.core.model.records import (
    BootKey,
    Order,
    Variant,
)


class Orders(Protocol):
    """Orders, and who wants them."""

    def of_untrusted(self) -> set[int]:
        """Orders for boots of kernels that are not trusted and are to be handed out."""

    def ensure_build(self, variant: Variant, priority: int) -> Order: ...

    def ensure_boot(self, key: BootKey, variant: Variant, priority: int) -> Order: ...

    def want(
        self, order: int, *, comparison: int | None = None, bisection: int | None = None
    ) -> None: ...

    def wanted(
        self, *, comparison: int | None = None, bisection: int | None = None
    ) -> list[Order]: ...

    def get(self, number: int) -> Order | None: ...

    def of_build(self, build_key: str) -> Order | None: ...

    def reopen(self, number: int, budget: int) -> None:
        """Let an order that is over be carried out once more, with so many attempts in all."""

    def open(self) -> list[Order]: ...

    def set_state(self, number: int, state: str, reason: str | None = None) -> None: ...

    def failed(self, kind: str, build_keys: Iterable[str]) -> list[Order]: ...

    def unwanted(self) -> list[Order]:
        """Open orders that no comparison or bisection under way wants any more."""

    def of_anchors(self) -> set[int]:
        """Open orders of anchor kernels: the only ones that a quarantined testbox gets."""

    def drop_ahead(self, bisection: int, priority: int, kept: Iterable[int]) -> None:
        """Stop wanting builds of at most `priority` that have not begun, other than `kept`; if nobody else wants them they are cancelled."""

    def give_back_budget(self, testbox: str, attempts: int) -> None:
        """Attempts that a testbox failed are not its orders' fault: each open one may make `attempts` more."""
