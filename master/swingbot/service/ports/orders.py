"""Orders, and the comparisons and bisections that need them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from swingbot.core.model.records import (
    BootKey,
    OpenOrder,
    Order,
    ReadyOrder,
    Variant,
)
from swingbot.core.model.statuses import OrderState
from swingbot_jobs.contract.orders import OrderKind


class Orders(Protocol):
    """Orders, and the comparisons and bisections that need them."""

    def ensure_build(self, variant: Variant, priority: int) -> Order:
        """Return the build order of the variant's build key; there is one per key.

        A second call may raise its priority but never lowers it. A cancelled or failed order waits
        again, and a failed one gets 3 more attempts.
        """

    def ensure_boots(
        self,
        boots: Sequence[tuple[BootKey, Variant]],
        priority: int,
        *,
        comparison: int | None = None,
        bisection: int | None = None,
    ) -> list[Order]:
        """Return the boot order of each key, in this order; there is one per key.

        A second call has the same effect as in `ensure_build`. Records that the comparison or the
        bisection needs these orders, if one is given. A key that is given twice counts once.
        """

    def want(
        self, order: int, *, comparison: int | None = None, bisection: int | None = None
    ) -> None:
        """Record that a comparison or a bisection needs an order. A second call changes nothing."""

    def unwant(self, order: int, *, bisection: int) -> None:
        """Withdraw the request of a bisection for an order."""

    def wanted(self, *, comparison: int | None = None, bisection: int | None = None) -> list[Order]:
        """Return the orders that the comparison or the bisection needs, by number."""

    def by_number(self, numbers: Collection[int]) -> dict[int, Order]:
        """Return these orders by number; those that do not exist are absent."""

    def of_build(self, build_key: str) -> Order | None:
        """Return the order that builds this key; None if it does not exist."""

    def reopen(self, number: int, budget: int) -> None:
        """Make an ended order ready again, with `budget` attempts in total."""

    def open(self, kind: OrderKind | None = None) -> list[OpenOrder]:
        """Return the orders of this kind, or of both, that are waiting, ready or running: highest
        priority first, then by number.
        """

    def ready(self, leased: Collection[str]) -> list[ReadyOrder]:
        """Return the ready orders with the trust of their kernels and with who requested them, in
        the order of `open`.

        Leaves out untried boots on the testboxes `leased`: they can neither start
        nor be abandoned now, and most orders of a busy lab are of this kind.
        """

    def set_state(self, number: int, state: OrderState, reason: str | None = None) -> None:
        """Set state and reason; `done`, `failed` and `cancelled` set the time of the end, other
        states clear it.
        """

    def set_states(
        self, numbers: Collection[int], state: OrderState, reason: str | None = None
    ) -> None:
        """Do what `set_state` does, for each of `numbers`."""

    def failed(self, kind: OrderKind, build_keys: Iterable[str]) -> list[Order]:
        """Return the failed orders of this kind with one of these build keys, by number."""

    def answered(self) -> set[int]:
        """Return the ids of open boot orders whose answer is known: a boot of an identical image
        with the same testbox, spec, series, purpose and k exists.
        """

    def unfinished_comparisons(self) -> set[int]:
        """Return the numbers of the comparisons that need an open order."""

    def open_boots_of_comparisons(self) -> dict[int, list[int]]:
        """Return the ids of the open boot orders of each running comparison."""

    def unwanted(self) -> list[Order]:
        """Return the open orders that no open comparison and no running bisection needs, by
        number.
        """

    def of_anchors(self) -> set[int]:
        """Return the numbers of open orders needed by an anchor: the only ones that a quarantined
        testbox gets.
        """

    def drop_ahead(self, bisection: int, priority: int, kept: Iterable[int]) -> None:
        """Drop a bisection's need for unstarted builds of at most `priority`, other than `kept`.

        The orders stay; `unwanted` returns those that nothing else needs.
        """

    def give_back_budget(self, testbox: str, attempts: int) -> None:
        """Raise the budget of each open order of a testbox, so that it has `attempts` attempts
        left: failures of the testbox are not its orders' fault. Never lowers a budget.
        """
