"""Orders and who wants them; attempts, dispatches and leases."""

from __future__ import annotations

from collections.abc import Iterable

from swingbot.core.model.records import Attempt, BootKey, Order, Variant
from swingbot_db.store.rows import Rows

_ORDER = (
    "id, kind, key, build_key, variant, testbox, spec, series, k, state, reason, priority, budget"
)


class OrderRows(Rows):
    def ensure_build(self, variant: Variant, priority: int) -> Order:
        return self._ensure_order("build", f"build:{variant.build_key}", variant, None, priority)

    def ensure_boot(self, key: BootKey, variant: Variant, priority: int) -> Order:
        return self._ensure_order("boot", str(key), variant, key, priority)

    def _ensure_order(
        self, kind: str, key: str, variant: Variant, boot: BootKey | None, priority: int
    ) -> Order:
        """One order per key. A second asker raises its priority; one that was cancelled or failed is tried again with a fresh budget."""
        row = self.first(
            "INSERT INTO orders AS o (kind, key, build_key, variant, testbox, spec, series, k, priority)"
            " VALUES (:kind, :key, :build_key, :variant, :box, :spec, :series, :k, :priority)"
            " ON CONFLICT (key) DO UPDATE SET priority = GREATEST(o.priority, excluded.priority),"
            "  budget = CASE WHEN o.state = 'failed' THEN o.budget + 3 ELSE o.budget END,"
            "  reason = CASE WHEN o.state IN ('cancelled', 'failed') THEN NULL ELSE o.reason END,"
            "  ended_at = CASE WHEN o.state IN ('cancelled', 'failed') THEN NULL ELSE o.ended_at END,"
            "  state = CASE WHEN o.state IN ('cancelled', 'failed') THEN 'waiting' ELSE o.state END"
            f" RETURNING {_ORDER}",
            kind=kind,
            key=key,
            build_key=variant.build_key,
            variant=variant.id,
            box=boot.testbox if boot else None,
            spec=boot.spec if boot else None,
            series=boot.series if boot else None,
            k=boot.k if boot else None,
            priority=priority,
        )
        assert row is not None
        return Order(**row._mapping)

    def want(
        self, order: int, *, comparison: int | None = None, bisection: int | None = None
    ) -> None:
        self.do(
            "INSERT INTO want (order_id, comparison, bisection) VALUES (:o, :c, :b) ON CONFLICT DO NOTHING",
            o=order,
            c=comparison,
            b=bisection,
        )

    def wanted(self, *, comparison: int | None = None, bisection: int | None = None) -> list[Order]:
        rows = self.all(
            f"SELECT {_ORDER} FROM orders WHERE id IN (SELECT order_id FROM want WHERE comparison = :c OR bisection = :b) ORDER BY id",
            c=comparison,
            b=bisection,
        )
        return [Order(**row._mapping) for row in rows]

    def order(self, number: int) -> Order | None:
        row = self.first(f"SELECT {_ORDER} FROM orders WHERE id = :id", id=number)
        return Order(**row._mapping) if row else None

    def build_order(self, build_key: str) -> Order | None:
        row = self.first(f"SELECT {_ORDER} FROM orders WHERE key = :key", key=f"build:{build_key}")
        return Order(**row._mapping) if row else None

    def reopen_order(self, number: int, budget: int) -> None:
        """Let an order that is over be carried out once more, with so many attempts in all."""
        self.do(
            "UPDATE orders SET state = 'ready', reason = NULL, ended_at = NULL, budget = :budget WHERE id = :id",
            id=number,
            budget=budget,
        )

    def open_orders(self) -> list[Order]:
        rows = self.all(
            f"SELECT {_ORDER} FROM orders WHERE state IN ('waiting', 'ready', 'running') ORDER BY priority DESC, id"
        )
        return [Order(**row._mapping) for row in rows]

    def set_order(self, number: int, state: str, reason: str | None = None) -> None:
        self.do(
            "UPDATE orders SET state = :state, reason = :reason, ended_at = CASE WHEN :over THEN clock_timestamp() END WHERE id = :id",
            id=number,
            state=state,
            reason=reason,
            over=state in ("done", "failed", "cancelled"),
        )

    def orders_that_failed(self, kind: str, build_keys: Iterable[str]) -> list[Order]:
        rows = self.all(
            f"SELECT {_ORDER} FROM orders WHERE state = 'failed' AND kind = :kind AND build_key = ANY(:keys)",
            kind=kind,
            keys=list(build_keys),
        )
        return [Order(**row._mapping) for row in rows]

    def unwanted_orders(self) -> list[Order]:
        """Open orders that no comparison or bisection under way wants any more."""
        rows = self.all(
            f"SELECT {_ORDER} FROM orders o WHERE state IN ('waiting', 'ready', 'running') AND NOT EXISTS (SELECT FROM want w"
            " LEFT JOIN comparison c ON c.id = w.comparison LEFT JOIN bisection b ON b.id = w.bisection"
            " WHERE w.order_id = o.id AND (c.status IN ('waiting', 'running') OR b.status = 'running'))"
        )
        return [Order(**row._mapping) for row in rows]

    def attempts(self, state: str, *, ingested: bool | None = None) -> list[Attempt]:
        rows = self.all(
            "SELECT a.id, a.order_id, a.number, a.state, a.outcome, extract(epoch FROM clock_timestamp() - a.created_at)::float AS age_seconds,"
            " COALESCE(d.number, 0) AS dispatch_number, d.state AS dispatch_state, d.result AS dispatch_result FROM attempt a"
            " LEFT JOIN LATERAL (SELECT number, state, result FROM dispatch WHERE attempt = a.id ORDER BY number DESC LIMIT 1) d ON true"
            " WHERE a.state = :state AND (CAST(:ingested AS boolean) IS NULL OR (a.ingested_at IS NOT NULL) = :ingested) ORDER BY a.id",
            state=state,
            ingested=ingested,
        )
        return [Attempt(**row._mapping) for row in rows]

    def attempts_made(self, order: int) -> tuple[int, float, str | None]:
        """How many attempts an order has had, seconds since the last one ended, and why that one failed."""
        row = self.first(
            "SELECT count(*) AS n, COALESCE(extract(epoch FROM clock_timestamp() - max(ended_at)), 1e9)::float AS ago,"
            " (array_agg(COALESCE(reason, outcome ->> 'reason') ORDER BY number DESC))[1] AS reason FROM attempt WHERE order_id = :id",
            id=order,
        )
        assert row is not None
        return row.n, row.ago, row.reason

    def add_attempt(self, order: int, number: int) -> int:
        found = self.value(
            "INSERT INTO attempt (order_id, number) VALUES (:o, :n) RETURNING id", o=order, n=number
        )
        assert isinstance(found, int)
        return found

    def add_dispatch(
        self, order: int, attempt: int, attempt_number: int, number: int, builder: str
    ) -> None:
        self.do(
            "INSERT INTO dispatch (attempt, number, builder, external_id) VALUES (:a, :n, :builder, :external)",
            a=attempt,
            n=number,
            builder=builder,
            external=f"o{order}/a{attempt_number}/d{number}",
        )

    def open_dispatches(self) -> dict[str, int]:
        """How many dispatches each builder has that are not over."""
        return {
            row.builder: row.n
            for row in self.all(
                "SELECT builder, count(*) AS n FROM dispatch WHERE state <> 'over' GROUP BY builder"
            )
        }

    def bury_attempt(self, number: int, reason: str) -> None:
        self.do(
            "UPDATE attempt SET state = 'dead', reason = :reason, ended_at = clock_timestamp() WHERE id = :id AND state = 'running'",
            id=number,
            reason=reason,
        )
        self.release_lease(number)

    def note_attempt(self, number: int, reason: str) -> None:
        """Say of an attempt that has ended why its outcome is not the order's."""
        self.do("UPDATE attempt SET reason = :reason WHERE id = :id", id=number, reason=reason)

    def mark_ingested(self, number: int) -> bool:
        """True for the one caller that may ingest this attempt's outcome."""
        return (
            self.do(
                "UPDATE attempt SET ingested_at = clock_timestamp() WHERE id = :id AND ingested_at IS NULL",
                id=number,
            )
            == 1
        )

    def take_lease(self, testbox: str, attempt: int) -> bool:
        return (
            self.do(
                "INSERT INTO lease (testbox, attempt) VALUES (:box, :a) ON CONFLICT (testbox) DO NOTHING",
                box=testbox,
                a=attempt,
            )
            == 1
        )

    def leased(self) -> set[str]:
        return {row.testbox for row in self.all("SELECT testbox FROM lease")}

    def release_lease(self, attempt: int) -> None:
        self.do("DELETE FROM lease WHERE attempt = :a", a=attempt)
