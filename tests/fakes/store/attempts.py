"""Attempts, dispatches and leases in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from swingbot.core.access.uploads import UploadUsage
from swingbot.core.model.dispatch import OrderFacts
from swingbot.core.model.records import Attempt
from swingbot.core.model.statuses import AttemptState
from swingbot.core.plan.deliveries import StoredAttempt
from swingbot.core.plan.testbox_rules import LeaseExpiry
from swingbot.service.ports.attempts import AttemptsMade
from swingbot_jobs import codec
from tests.fakes.store.boots import Boots
from tests.fakes.store.tables import AttemptRow, LeaseRow, Noun, Refused


class Attempts(Noun):
    def find(self, attempt: int, *, lock: bool = False) -> StoredAttempt | None:
        row = self.db.attempts.get(attempt)
        if row is None:
            return None
        order = self.db.orders[row.order].order
        return StoredAttempt(
            state=row.state,
            order=row.order,
            kind=order.kind,
            order_state=order.state,
            outcome=row.outcome,
            late=row.late,
        )

    def end(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        row = self.db.attempts[attempt]
        if row.state == "running":
            self.db.attempts[attempt] = replace(
                row, state="ended", outcome=outcome, ended_at=self.db.now()
            )

    def keep_late(self, attempt: int, outcome: Mapping[str, Any]) -> None:
        self.db.attempts[attempt] = replace(self.db.attempts[attempt], late=outcome)

    def order_facts(self, attempt: int) -> OrderFacts | None:
        row = self.db.attempts.get(attempt)
        if row is None:
            return None
        order = self.db.orders[row.order].order
        variant, built = self.db.variants[order.variant], self.db.builds.get(order.build_key)
        return OrderFacts(
            attempt=attempt,
            attempt_state=row.state,
            order=order.id,
            order_state=order.state,
            kind=order.kind,
            build_key=order.build_key,
            testbox=order.testbox,
            k=order.k,
            purpose=order.purpose,
            tree=variant.tree,
            commit=variant.commit,
            kconfig=variant.kconfig,
            compiler=variant.compiler,
            layout=variant.layout,
            trust=variant.trust,
            image_sha256=built.build.image_sha256 if built else None,
            unit_jobs=codec.plain(self.db.specs[order.spec]) if order.spec else [],
            measured_seconds=Boots(self.db).seconds(order.testbox, order.spec)
            if order.testbox and order.spec
            else None,
        )

    def uploads(self, attempt: int, sha256: str) -> UploadUsage | None:
        row = self.db.attempts.get(attempt)
        if row is None:
            return None
        others = [
            size for (a, file), size in self.db.uploads.items() if a == attempt and file != sha256
        ]
        over = row.state == "ended" or row.late is not None
        return UploadUsage(over=over, files=len(others), size=sum(others))

    def add_upload(self, attempt: int, sha256: str, size: int) -> None:
        self.db.uploads.setdefault((attempt, sha256), size)

    def in_state(self, state: AttemptState, *, ingested: bool | None = None) -> list[Attempt]:
        now = self.db.now()
        found = []
        for row in self.db.attempts.values():
            if row.state != state or ingested not in (None, row.ingested):
                continue
            last = max(
                (d for d in self.db.dispatches.values() if d.attempt == row.id),
                key=lambda d: d.number,
                default=None,
            )
            found.append(
                Attempt(
                    id=row.id,
                    order_id=row.order,
                    number=row.number,
                    state=row.state,
                    outcome=row.outcome,
                    age_seconds=(now - row.created_at).total_seconds(),
                    dispatch_number=last.number if last else 0,
                    dispatch_state=last.state if last else None,
                    dispatch_result=last.result if last else None,
                )
            )
        return found

    def made(self, order: int) -> AttemptsMade:
        rows = [row for row in self.db.attempts.values() if row.order == order]
        ends = [row.ended_at for row in rows if row.ended_at is not None]
        last = max(rows, key=lambda row: row.number, default=None)
        why = None if last is None else last.reason or (last.outcome or {}).get("reason")
        ago = (self.db.now() - max(ends)).total_seconds() if ends else 1e9
        return AttemptsMade(len(rows), ago, why)

    def made_of(self, orders: Collection[int]) -> dict[int, AttemptsMade]:
        return {order: self.made(order) for order in orders}

    def add(self, order: int, number: int) -> int:
        rows = [row for row in self.db.attempts.values() if row.order == order]
        if any(row.number == number or row.state == "running" for row in rows):
            raise Refused(f"order {order} has attempt {number}, or one that runs")
        row = AttemptRow(
            id=self.db.next_id("attempt"), order=order, number=number, created_at=self.db.begun
        )
        self.db.attempts[row.id] = row
        return row.id

    def declare_dead(self, number: int, reason: str) -> None:
        row = self.db.attempts[number]
        if row.state == "running":
            self.db.attempts[number] = replace(
                row, state="dead", reason=reason, ended_at=self.db.now()
            )
        self.release_lease(number)

    def set_reason(self, number: int, reason: str) -> None:
        self.db.attempts[number] = replace(self.db.attempts[number], reason=reason)

    def mark_ingested(self, number: int) -> bool:
        row = self.db.attempts[number]
        self.db.attempts[number] = replace(row, ingested=True)
        return not row.ingested

    def take_lease(self, testbox: str, attempt: int) -> bool:
        free = testbox not in self.db.leases
        if free:
            self.db.leases[testbox] = LeaseRow(attempt=attempt)
        return free

    def leased(self) -> set[str]:
        return set(self.db.leases)

    def release_lease(self, attempt: int) -> None:
        for testbox in [name for name, row in self.db.leases.items() if row.attempt == attempt]:
            del self.db.leases[testbox]

    def clock(self) -> float:
        return self.db.now().timestamp()

    def restart_leases(self, seconds: float) -> None:
        for testbox, lease in self.db.leases.items():
            if lease.holder is not None:
                until = self.db.now() + timedelta(seconds=seconds)
                self.db.leases[testbox] = replace(lease, until=until)

    def lapsed_leases(self, longest: float) -> list[LeaseExpiry]:
        now = self.db.now()
        found = []
        for testbox, lease in sorted(self.db.leases.items()):
            attempt = self.db.attempts[lease.attempt]
            if (
                lease.holder is not None
                and lease.until is not None
                and not now <= lease.until <= now + timedelta(seconds=longest)
                and attempt.state == "running"
                and self.db.orders[attempt.order].order.testbox == testbox
            ):
                found.append(
                    LeaseExpiry(
                        testbox=testbox,
                        attempt=attempt.id,
                        order=attempt.order,
                        holder=lease.holder,
                        silent_seconds=max(0.0, (now - lease.until).total_seconds()),
                    )
                )
        return found
