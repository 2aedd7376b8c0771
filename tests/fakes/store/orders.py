"""Orders in memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from swingbot.core.model.records import BootKey, OpenOrder, Order, ReadyOrder, Variant
from swingbot.core.model.statuses import OrderState
from swingbot_jobs.contract.orders import SEARCH, OrderKind
from tests.fakes.store.tables import Noun, OrderRow, Refused

OPEN = ("waiting", "ready", "running")


class Orders(Noun):
    def ensure_build(self, variant: Variant, priority: int) -> Order:
        return self._ensure("build", f"build:{variant.build_key}", variant, None, priority)

    def ensure_boots(
        self,
        boots: Sequence[tuple[BootKey, Variant]],
        priority: int,
        *,
        comparison: int | None = None,
        bisection: int | None = None,
    ) -> list[Order]:
        orders = [
            self._ensure("boot", str(key), variant, key, priority)
            for key, variant in dict(boots).items()
        ]
        if comparison is not None or bisection is not None:
            for order in orders:
                self.want(order.id, comparison=comparison, bisection=bisection)
        return orders

    def _ensure(
        self,
        kind: OrderKind,
        key: str,
        variant: Variant,
        boot: BootKey | None,
        priority: int,
    ) -> Order:
        known = next(iter(self._where(lambda o: o.key == key)), None)
        if known is not None:
            return self._ask_again(known, priority)
        order = Order(
            id=self.db.next_id("orders"),
            kind=kind,
            key=key,
            build_key=variant.build_key,
            variant=variant.id,
            testbox=boot.testbox if boot else None,
            spec=boot.spec if boot else None,
            series=boot.series if boot else None,
            k=boot.k if boot else None,
            purpose=boot.purpose if boot else SEARCH,
            state="waiting",
            reason=None,
            priority=priority,
            budget=3,
        )
        self.db.orders[order.id] = OrderRow(order=order, created_at=self.db.begun)
        return order

    def _ask_again(self, known: Order, priority: int) -> Order:
        again: dict[str, Any] = {"priority": max(known.priority, priority)}
        if known.state in ("cancelled", "failed"):
            again |= {"state": "waiting", "reason": None}
            again["budget"] = known.budget + (3 if known.state == "failed" else 0)
        return self._put(known.id, dated="state" in again, **again)

    def _put(self, number: int, *, dated: bool = True, **values: Any) -> Order:
        """Change an order; `dated`: its end follows its state."""
        row = self.db.orders[number]
        order = replace(row.order, **values)
        ended = (self.db.now() if order.over else None) if dated else row.ended_at
        self.db.orders[number] = replace(row, order=order, ended_at=ended)
        return order

    def _where(self, wanted: Callable[[Order], bool]) -> list[Order]:
        return [row.order for _, row in sorted(self.db.orders.items()) if wanted(row.order)]

    def want(
        self, order: int, *, comparison: int | None = None, bisection: int | None = None
    ) -> None:
        if (comparison is None) == (bisection is None):
            raise Refused("an order is wanted by a comparison or a bisection")
        self.db.wants[order, comparison, bisection] = None

    def unwant(self, order: int, *, bisection: int) -> None:
        self.db.wants.pop((order, None, bisection), None)

    def wanted(self, *, comparison: int | None = None, bisection: int | None = None) -> list[Order]:
        numbers = {
            order
            for order, c, b in self.db.wants
            if (c is not None and c == comparison) or (b is not None and b == bisection)
        }
        return self._where(lambda o: o.id in numbers)

    def by_number(self, numbers: Collection[int]) -> dict[int, Order]:
        return {order.id: order for order in self._where(lambda o: o.id in numbers)}

    def of_build(self, build_key: str) -> Order | None:
        return next(iter(self._where(lambda o: o.key == f"build:{build_key}")), None)

    def reopen(self, number: int, budget: int) -> None:
        self._put(number, state="ready", reason=None, budget=budget)

    def open(self, kind: OrderKind | None = None) -> list[OpenOrder]:
        return [
            OpenOrder(*(getattr(order, name) for name in OpenOrder._fields))
            for order in self._urgent_first()
            if order.state in OPEN and kind in (None, order.kind)
        ]

    def ready(self, leased: Collection[str]) -> list[ReadyOrder]:
        tried = {attempt.order for attempt in self.db.attempts.values()}
        return [
            ReadyOrder(order=order, trust=self.db.variants[order.variant].trust)
            for order in self._urgent_first()
            if order.state == "ready" and (order.testbox not in leased or order.id in tried)
        ]

    def _urgent_first(self) -> list[Order]:
        return sorted(self._where(lambda _: True), key=lambda o: (-o.priority, o.id))

    def set_state(self, number: int, state: OrderState, reason: str | None = None) -> None:
        self._put(number, state=state, reason=reason)

    def set_states(
        self, numbers: Collection[int], state: OrderState, reason: str | None = None
    ) -> None:
        for number in numbers:
            self.set_state(number, state, reason)

    def failed(self, kind: OrderKind, build_keys: Iterable[str]) -> list[Order]:
        keys = set(build_keys)
        return self._where(lambda o: o.state == "failed" and o.kind == kind and o.build_key in keys)

    def answered(self) -> set[int]:
        known = {
            (b.image, o.testbox, o.spec, o.series, o.purpose, o.k)
            for b in self.db.boots.values()
            for o in [b.order]
        }
        return {
            o.id
            for o in self._where(lambda o: o.state in OPEN and o.kind == "boot")
            if (row := self.db.builds.get(o.build_key))
            and (row.build.image_sha256, o.testbox, o.spec, o.series, o.purpose, o.k) in known
        }

    def unfinished_comparisons(self) -> set[int]:
        still_open = {o.id for o in self._where(lambda o: o.state in OPEN)}
        return {c for order, c, _ in self.db.wants if order in still_open and c is not None}

    def open_boots_of_comparisons(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for o in self._where(lambda o: o.state in OPEN and o.kind == "boot"):
            for order, c, _ in self.db.wants:
                if (
                    order == o.id
                    and c is not None
                    and self.db.comparisons[c].comparison.status == "running"
                ):
                    found.setdefault(c, []).append(o.id)
        return found

    def unwanted(self) -> list[Order]:
        wanted = {
            order
            for order, c, b in self.db.wants
            if (c is not None and self.db.comparisons[c].comparison.open)
            or (b is not None and self.db.bisections[b].bisection.status == "running")
        }
        return self._where(lambda o: o.state in OPEN and o.id not in wanted)

    def of_anchors(self) -> set[int]:
        anchored = {
            order
            for order, c, _ in self.db.wants
            if c is not None and self.db.comparisons[c].comparison.kind == "anchor"
        }
        return {o.id for o in self._where(lambda o: o.state in OPEN and o.id in anchored)}

    def drop_ahead(self, bisection: int, priority: int, kept: Iterable[int]) -> None:
        stay = set(kept)
        for key in list(self.db.wants):
            order = self.db.orders[key[0]].order
            if (
                key[2] == bisection
                and order.kind == "build"
                and order.priority <= priority
                and order.state in ("waiting", "ready")
                and order.id not in stay
            ):
                del self.db.wants[key]

    def give_back_budget(self, testbox: str, attempts: int) -> None:
        for order in self._where(lambda o: o.testbox == testbox and o.state in OPEN):
            made = sum(row.order == order.id for row in self.db.attempts.values())
            self._put(order.id, dated=False, budget=max(order.budget, made + attempts))
