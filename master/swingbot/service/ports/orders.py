"""Orders, and who wants them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from swingbot.core.model.records import (
    BootKey,
    Order,
    Variant,
)
from swingbot.core.model.statuses import OrderKind, OrderState


class Orders(Protocol):
    """Orders, and who wants them."""

    def of_untrusted(self) -> set[int]:
        """Numbers of ready boot orders whose kernel is not trusted."""

    def ensure_build(self, variant: Variant, priority: int) -> Order:
        """The build order of the variant's build key; there is one per key.

        A second call raises its priority and never lowers it. An order that was cancelled or failed waits again, and one that failed gets 3 attempts more.
        """

    def ensure_boot(self, key: BootKey, variant: Variant, priority: int) -> Order:
        """The boot order of `key`; there is one per key. A second call does what it does in `ensure_build`."""

    def want(
        self, order: int, *, comparison: int | None = None, bisection: int | None = None
    ) -> None:
        """Record that a comparison or a bisection wants an order. A second call changes nothing."""

    def wanted(self, *, comparison: int | None = None, bisection: int | None = None) -> list[Order]:
        """Orders that the comparison or the bisection wants, by number."""

    def get(self, number: int) -> Order | None:
        """An order by number; None if there is none."""

    def of_build(self, build_key: str) -> Order | None:
        """The order that builds this key; None if nobody asked for it."""

    def reopen(self, number: int, budget: int) -> None:
        """Make an order that is over ready again, with `budget` attempts in all."""

    def open(self) -> list[Order]:
        """Orders that are waiting, ready or running: highest priority first, then by number."""

    def set_state(self, number: int, state: OrderState, reason: str | None = None) -> None:
        """Set state and reason; `done`, `failed` and `cancelled` date the end, other states clear it."""

    def failed(self, kind: OrderKind, build_keys: Iterable[str]) -> list[Order]:
        """Failed orders of this kind with one of these build keys, by number."""

    def unwanted(self) -> list[Order]:
        """Open orders that no open comparison and no running bisection wants, by number."""

    def of_anchors(self) -> set[int]:
        """Numbers of open orders that an anchor wants: the only ones that a quarantined testbox gets."""

    def drop_ahead(self, bisection: int, priority: int, kept: Iterable[int]) -> None:
        """Stop wanting builds of at most `priority` that have not begun, other than `kept`. The orders stay; `unwanted` has those that nobody else wants."""

    def give_back_budget(self, testbox: str, attempts: int) -> None:
        """Attempts that a testbox lost are not its orders' fault: let each open one of its orders make `attempts` more than it has made. Never lowers a budget."""
