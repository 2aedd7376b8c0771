"""Orders, and the requests that need them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict

from swingbot.core.model.records import (
    BootKey,
    OpenOrder,
    Order,
    ReadyOrder,
    Variant,
)
from swingbot.core.model.statuses import OVER, OrderState
from swingbot_db.store.rows import Rows, records
from swingbot_db.turns import JOIN_TURNS, TURNS
from swingbot_jobs.contract.orders import OrderKind

_ORDER = (
    "id, kind, key, build_key, variant, testbox, spec, series, k, purpose, state, "
    "reason, priority, budget"
)
_OPEN_ORDER = ", ".join(OpenOrder._fields)
# A further request raises the priority of an order; a cancelled or failed one is retried with a new
# budget.
_AGAIN = """ON CONFLICT (key) DO UPDATE SET priority = GREATEST(o.priority, excluded.priority),
  budget = CASE WHEN o.state = 'failed' THEN o.budget + 3 ELSE o.budget END,
  reason = CASE WHEN o.state IN ('cancelled', 'failed') THEN NULL ELSE o.reason END,
  ended_at = CASE WHEN o.state IN ('cancelled', 'failed') THEN NULL ELSE o.ended_at END,
  state = CASE WHEN o.state IN ('cancelled', 'failed') THEN 'waiting' ELSE o.state END"""

_PLACE_BOOTS = f"""WITH placed AS (
  INSERT INTO orders AS o
    (kind, key, build_key, variant, testbox, spec, series, k, purpose, priority)
  SELECT 'boot', r.key, r.build_key, r.variant, r.testbox, r.spec, r.series, r.k, r.purpose,
    :priority
  FROM ROWS FROM (jsonb_to_recordset(CAST(:rows AS jsonb)) AS (key text, build_key text,
    variant bigint, testbox text, spec text, series text, k int, purpose text)) WITH ORDINALITY
    AS r (key, build_key, variant, testbox, spec, series, k, purpose, place)
  ORDER BY r.place {_AGAIN} RETURNING {_ORDER}
), needed AS (
  INSERT INTO want (order_id, comparison, bisection)
  SELECT id, :comparison, :bisection FROM placed
  WHERE CAST(:comparison AS bigint) IS NOT NULL OR CAST(:bisection AS bigint) IS NOT NULL
  ON CONFLICT DO NOTHING
)"""

_READY = f"""WITH {TURNS}
SELECT {", ".join(f"o.{name}" for name in _ORDER.split(", "))}, v.trust, asker.who AS asker,
  served.ago AS served
FROM orders o JOIN variant v ON v.id = o.variant {JOIN_TURNS}
WHERE o.state = 'ready' AND (o.testbox IS NULL OR NOT o.testbox = ANY(:leased)
  OR EXISTS (SELECT FROM attempt t WHERE t.order_id = o.id))
ORDER BY o.priority DESC, o.id"""


class Orders(Rows):
    def ensure_build(self, variant: Variant, priority: int) -> Order:
        row = self.select_one(
            "INSERT INTO orders AS o (kind, key, build_key, variant, priority)"
            f" VALUES ('build', :key, :build_key, :variant, :priority) {_AGAIN} RETURNING {_ORDER}",
            key=f"build:{variant.build_key}",
            build_key=variant.build_key,
            variant=variant.id,
            priority=priority,
        )
        assert row is not None
        return Order(**row._mapping)

    def ensure_boots(
        self,
        boots: Sequence[tuple[BootKey, Variant]],
        priority: int,
        *,
        comparison: int | None = None,
        bisection: int | None = None,
    ) -> list[Order]:
        # An anchor asks for each boot twice, once for each side.
        rows = {str(key): (key, variant) for key, variant in boots}
        placed = self.select(
            f"{_PLACE_BOOTS} SELECT {_ORDER} FROM placed",
            rows=json.dumps(
                [
                    {**asdict(key), "key": name, "variant": variant.id}
                    for name, (key, variant) in rows.items()
                ]
            ),
            priority=priority,
            comparison=comparison,
            bisection=bisection,
        )
        orders = {row.key: Order(**row._mapping) for row in placed}
        return [orders[key] for key in rows]

    def want(
        self, order: int, *, comparison: int | None = None, bisection: int | None = None
    ) -> None:
        self.execute(
            "INSERT INTO want (order_id, comparison, bisection) VALUES (:o, :c, :b) ON CONFLICT DO"
            " NOTHING",
            o=order,
            c=comparison,
            b=bisection,
        )

    def unwant(self, order: int, *, bisection: int) -> None:
        self.execute(
            "DELETE FROM want WHERE (order_id, bisection) = (:o, :b)", o=order, b=bisection
        )

    def wanted(self, *, comparison: int | None = None, bisection: int | None = None) -> list[Order]:
        rows = self.select(
            f"SELECT {_ORDER} FROM orders WHERE id IN (SELECT order_id FROM want WHERE comparison"
            " = :c OR bisection = :b) ORDER BY id",
            c=comparison,
            b=bisection,
        )
        return records(Order, rows)

    def by_number(self, numbers: Collection[int]) -> dict[int, Order]:
        rows = self.select(
            f"SELECT {_ORDER} FROM orders WHERE id = ANY(:numbers)", numbers=list(numbers)
        )
        return {row.id: Order(**row._mapping) for row in rows}

    def of_build(self, build_key: str) -> Order | None:
        row = self.select_one(
            f"SELECT {_ORDER} FROM orders WHERE key = :key", key=f"build:{build_key}"
        )
        return Order(**row._mapping) if row else None

    def reopen(self, number: int, budget: int) -> None:
        self.execute(
            "UPDATE orders SET state = 'ready', reason = NULL, ended_at = NULL, budget = :budget"
            " WHERE id = :id",
            id=number,
            budget=budget,
        )

    def open(self, kind: OrderKind | None = None) -> list[OpenOrder]:
        rows = self.select(
            f"SELECT {_OPEN_ORDER} FROM orders WHERE state IN ('waiting', 'ready', 'running')"
            " AND kind = coalesce(:kind, kind) ORDER BY priority DESC, id",
            kind=kind,
        )
        return [OpenOrder._make(row) for row in rows]

    def ready(self, leased: Collection[str]) -> list[ReadyOrder]:
        rows = self.select(_READY, leased=list(leased))
        orders = records(Order, rows, without=["trust", "asker", "served"])
        return [
            ReadyOrder(order=order, trust=row.trust, asker=row.asker, served=row.served)
            for order, row in zip(orders, rows, strict=True)
        ]

    def set_state(self, number: int, state: OrderState, reason: str | None = None) -> None:
        self.set_states([number], state, reason)

    def set_states(
        self, numbers: Collection[int], state: OrderState, reason: str | None = None
    ) -> None:
        self.execute(
            "UPDATE orders SET state = :state, reason = :reason, ended_at = CASE WHEN :over THEN"
            " clock_timestamp() END WHERE id = ANY(:numbers)",
            numbers=list(numbers),
            state=state,
            reason=reason,
            over=state in OVER,
        )

    def failed(self, kind: OrderKind, build_keys: Iterable[str]) -> list[Order]:
        rows = self.select(
            f"SELECT {_ORDER} FROM orders WHERE state = 'failed' AND kind = :kind AND build_key ="
            " ANY(:keys) ORDER BY id",
            kind=kind,
            keys=list(build_keys),
        )
        return records(Order, rows)

    def answered(self) -> set[int]:
        rows = self.select(
            "SELECT o.id FROM orders o JOIN kernel_build kb ON kb.build_key = o.build_key"
            " WHERE o.kind = 'boot' AND o.state IN ('waiting', 'ready', 'running') AND EXISTS"
            " (SELECT FROM boot b WHERE (b.image_sha256, b.testbox, b.spec, b.series, b.purpose,"
            " b.k) = (kb.image_sha256, o.testbox, o.spec, o.series, o.purpose, o.k))"
        )
        return {row.id for row in rows}

    def unfinished_comparisons(self) -> set[int]:
        rows = self.select(
            "SELECT DISTINCT w.comparison FROM orders o JOIN want w ON w.order_id = o.id"
            " WHERE o.state IN ('waiting', 'ready', 'running') AND w.comparison IS NOT NULL"
        )
        return {row.comparison for row in rows}

    def open_boots_of_comparisons(self) -> dict[int, list[int]]:
        rows = self.select(
            "SELECT w.comparison, array_agg(o.id ORDER BY o.id) AS orders FROM orders o"
            " JOIN want w ON w.order_id = o.id JOIN comparison c ON c.id = w.comparison"
            " WHERE o.kind = 'boot' AND o.state IN ('waiting', 'ready', 'running')"
            " AND c.status = 'running' GROUP BY w.comparison"
        )
        return {row.comparison: list(row.orders) for row in rows}

    def unwanted(self) -> list[Order]:
        rows = self.select(
            f"SELECT {_ORDER} FROM orders o WHERE state IN ('waiting', 'ready', 'running') AND NOT"
            " EXISTS (SELECT FROM want w"
            " LEFT JOIN comparison c ON c.id = w.comparison LEFT JOIN bisection b ON b.id ="
            " w.bisection"
            " WHERE w.order_id = o.id AND (c.status IN ('waiting', 'running') OR b.status ="
            " 'running')) ORDER BY o.id"
        )
        return records(Order, rows)

    def of_anchors(self) -> set[int]:
        rows = self.select(
            "SELECT w.order_id FROM want w JOIN comparison c ON c.id = w.comparison JOIN orders o"
            " ON o.id = w.order_id"
            " WHERE c.kind = 'anchor' AND o.state IN ('waiting', 'ready', 'running')"
        )
        return {row.order_id for row in rows}

    def drop_ahead(self, bisection: int, priority: int, kept: Iterable[int]) -> None:
        self.execute(
            "DELETE FROM want w USING orders o WHERE o.id = w.order_id AND w.bisection = :b AND"
            " o.kind = 'build' AND o.priority <= :priority"
            " AND o.state IN ('waiting', 'ready') AND NOT o.id = ANY(:kept)",
            b=bisection,
            priority=priority,
            kept=list(kept),
        )

    def give_back_budget(self, testbox: str, attempts: int) -> None:
        self.execute(
            "UPDATE orders o SET budget = GREATEST(budget, (SELECT count(*) FROM attempt a WHERE"
            " a.order_id = o.id) + :more)"
            " WHERE testbox = :testbox AND state IN ('waiting', 'ready', 'running')",
            testbox=testbox,
            more=attempts,
        )
