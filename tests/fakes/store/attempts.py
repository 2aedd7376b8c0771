"""Attempts, dispatches and leases in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from swingbot.core.model.records import Attempt
from swingbot.core.model.statuses import AttemptState
from swingbot.core.plan.testbox_rules import LeaseExpiry
from swingbot.service.ports.attempts import AttemptsMade
from tests.fakes.store.tables import AttemptRow, DispatchRow, LeaseRow, Noun, Refused


class Attempts(Noun):
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

    def add_dispatch(
        self, order: int, attempt: int, attempt_number: int, number: int, builder: str
    ) -> None:
        if any(d.attempt == attempt and d.state != "over" for d in self.db.dispatches.values()):
            raise Refused(f"attempt {attempt} has an open dispatch")
        self.db.dispatches[attempt, number] = DispatchRow(
            attempt=attempt, number=number, builder=builder
        )

    def open_dispatches(self) -> dict[str, int]:
        return dict(
            Counter(
                d.builder
                for d in self.db.dispatches.values()
                if d.state != "over" and self.db.attempts[d.attempt].state != "ended"
            )
        )

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
