"""Attempts at orders, their dispatches, and the leases of testboxes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from swingbot.core.access.uploads import UploadUsage
from swingbot.core.model.dispatch import OrderFacts
from swingbot.core.model.records import (
    Attempt,
)
from swingbot.core.model.statuses import AttemptState
from swingbot.core.plan.deliveries import StoredAttempt
from swingbot.core.plan.testbox_rules import LeaseExpiry
from swingbot.service.ports.attempts import AttemptsMade
from swingbot_db.store.boots import MEAN_SECONDS
from swingbot_db.store.rows import Rows, records


class Attempts(Rows):
    def find(self, attempt: int, *, lock: bool = False) -> StoredAttempt | None:
        row = self.select_one(
            "SELECT a.state, a.outcome, a.late, a.order_id AS order, o.kind, o.state AS order_state"
            " FROM attempt a JOIN orders o ON o.id = a.order_id WHERE a.id = :id"
            f" {'FOR UPDATE OF a' if lock else ''}",
            id=attempt,
        )
        return None if row is None else StoredAttempt(**row._mapping)

    def end(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        self.execute(
            "UPDATE attempt SET state = 'ended', outcome = CAST(:outcome AS jsonb), ended_at ="
            " clock_timestamp() WHERE id = :id AND state = 'running'",
            id=attempt,
            outcome=json.dumps(outcome),
        )

    def keep_late(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        self.execute(
            "UPDATE attempt SET late = CAST(:outcome AS jsonb) WHERE id = :id",
            id=attempt,
            outcome=json.dumps(outcome),
        )

    def order_facts(self, attempt: int) -> OrderFacts | None:
        row = self.select_one(
            "SELECT a.id AS attempt, a.state AS attempt_state, o.id AS order, o.state AS"
            " order_state, o.kind, o.build_key, o.testbox, o.k, o.purpose, v.tree, v.commit,"
            " v.kconfig, v.compiler, v.layout, v.trust, b.image_sha256,"
            " coalesce(s.unit_jobs, '[]'::jsonb) AS unit_jobs,"
            f" ({MEAN_SECONDS.format(testbox='o.testbox', spec='o.spec')}) AS measured_seconds"
            " FROM attempt a JOIN orders o ON o.id = a.order_id JOIN variant v ON v.id = o.variant"
            " LEFT JOIN kernel_build b ON b.build_key = o.build_key"
            " LEFT JOIN boot_spec s ON s.sha256 = o.spec WHERE a.id = :id",
            id=attempt,
        )
        return None if row is None else OrderFacts(**row._mapping)

    def uploads(self, attempt: int, sha256: str) -> UploadUsage | None:
        row = self.select_one(
            "SELECT a.state = 'ended' OR a.late IS NOT NULL AS over, f.files, f.size"
            " FROM attempt a, LATERAL (SELECT count(*) AS files, coalesce(sum(bytes), 0)::bigint AS"
            " size FROM attempt_file WHERE attempt = a.id AND sha256 <> :sha256) f"
            " WHERE a.id = :attempt",
            attempt=attempt,
            sha256=sha256,
        )
        return None if row is None else UploadUsage(**row._mapping)

    def add_upload(self, attempt: int, sha256: str, size: int) -> None:
        self.execute(
            "INSERT INTO attempt_file (attempt, sha256, bytes) VALUES (:attempt, :sha256, :bytes)"
            " ON CONFLICT DO NOTHING",
            attempt=attempt,
            sha256=sha256,
            bytes=size,
        )

    def in_state(self, state: AttemptState, *, ingested: bool | None = None) -> list[Attempt]:
        rows = self.select(
            "SELECT a.id, a.order_id, a.number, a.state, a.outcome, extract(epoch FROM"
            " clock_timestamp() - a.created_at)::float AS age_seconds,"
            " COALESCE(d.number, 0) AS dispatch_number, d.state AS dispatch_state, d.result AS"
            " dispatch_result FROM attempt a"
            " LEFT JOIN LATERAL (SELECT number, state, result FROM dispatch WHERE attempt = a.id"
            " ORDER BY number DESC LIMIT 1) d ON true"
            " WHERE a.state = :state AND (CAST(:ingested AS boolean) IS NULL OR (a.ingested_at IS"
            " NOT NULL) = :ingested) ORDER BY a.id",
            state=state,
            ingested=ingested,
        )
        return records(Attempt, rows)

    def made(self, order: int) -> AttemptsMade:
        return self.made_of([order])[order]

    def made_of(self, orders: Collection[int]) -> dict[int, AttemptsMade]:
        rows = self.select(
            "SELECT order_id, count(*) AS n, COALESCE(extract(epoch FROM clock_timestamp() -"
            " max(ended_at)), 1e9)::float AS ago,"
            " (array_agg(COALESCE(reason, outcome ->> 'reason') ORDER BY number DESC))[1] AS"
            " reason FROM attempt WHERE order_id = ANY(:orders) GROUP BY order_id",
            orders=list(orders),
        )
        known = {row.order_id: AttemptsMade(row.n, row.ago, row.reason) for row in rows}
        return {order: known.get(order, AttemptsMade(0, 1e9, None)) for order in orders}

    def add(self, order: int, number: int) -> int:
        attempt = self.scalar(
            "INSERT INTO attempt (order_id, number) VALUES (:o, :n) RETURNING id", o=order, n=number
        )
        assert isinstance(attempt, int)
        return attempt

    def declare_dead(self, number: int, reason: str) -> None:
        self.execute(
            "UPDATE attempt SET state = 'dead', reason = :reason, ended_at = clock_timestamp()"
            " WHERE id = :id AND state = 'running'",
            id=number,
            reason=reason,
        )
        self.release_lease(number)

    def set_reason(self, number: int, reason: str) -> None:
        self.execute("UPDATE attempt SET reason = :reason WHERE id = :id", id=number, reason=reason)

    def mark_ingested(self, number: int) -> bool:
        return (
            self.execute(
                "UPDATE attempt SET ingested_at = clock_timestamp() WHERE id = :id AND ingested_at"
                " IS NULL",
                id=number,
            )
            == 1
        )

    def take_lease(self, testbox: str, attempt: int) -> bool:
        return (
            self.execute(
                "INSERT INTO lease (testbox, attempt) VALUES (:testbox, :a) ON CONFLICT (testbox)"
                " DO NOTHING",
                testbox=testbox,
                a=attempt,
            )
            == 1
        )

    def leased(self) -> set[str]:
        return {row.testbox for row in self.select("SELECT testbox FROM lease")}

    def release_lease(self, attempt: int) -> None:
        self.execute("DELETE FROM lease WHERE attempt = :a", a=attempt)

    def lapsed_leases(self, longest: float) -> list[LeaseExpiry]:
        rows = self.select(
            "SELECT l.testbox, l.attempt, a.order_id AS order, l.holder, greatest(0, extract(epoch"
            " FROM clock_timestamp() - l.until))::float AS silent_seconds"
            " FROM lease l JOIN attempt a ON a.id = l.attempt JOIN orders o ON o.id = a.order_id"
            " AND o.testbox = l.testbox"
            " WHERE (l.until < clock_timestamp()"
            " OR l.until > clock_timestamp() + make_interval(secs => :longest))"
            " AND a.state = 'running' ORDER BY l.testbox",
            longest=longest,
        )
        return records(LeaseExpiry, rows)

    def clock(self) -> float:
        return float(self.scalar("SELECT extract(epoch FROM clock_timestamp())::float"))

    def restart_leases(self, seconds: float) -> None:
        self.execute(
            "UPDATE lease SET until = clock_timestamp() + make_interval(secs => :seconds)"
            " WHERE holder IS NOT NULL",
            seconds=seconds,
        )
