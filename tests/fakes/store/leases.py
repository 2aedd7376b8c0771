"""Leases in memory, as controllers renew them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from swingbot.core.plan.leases import Lease
from tests.fakes.store.tables import Noun


class Leases(Noun):
    def lock(self, attempt: int) -> Lease | None:
        held = self.testboxes(attempt)
        if not held:
            return None
        row = self.db.leases[held[0]]
        rest = None if row.until is None else (row.until - self.db.now()).total_seconds()
        return Lease(
            testbox=held[0], holder=row.holder, until=row.until, rest=rest, fence=row.fence
        )

    def hold(self, attempt: int, controller: str, fence: int | None, seconds: float) -> int:
        if fence is None:
            fence = self.db.next_id("fence")
        for testbox in self.testboxes(attempt):
            self.db.leases[testbox] = replace(
                self.db.leases[testbox],
                holder=controller,
                fence=fence,
                until=self.db.now() + timedelta(seconds=seconds),
            )
        return fence

    def testboxes(self, attempt: int) -> list[str]:
        held = [name for name, row in self.db.leases.items() if row.attempt == attempt]
        own = self.db.orders[self.db.attempts[attempt].order].order.testbox if held else None
        return sorted(held, key=lambda name: (name != own, name))
