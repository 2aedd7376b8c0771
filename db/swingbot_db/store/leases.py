"""Leases, as renewed by controllers of testboxes; the brain takes and returns them (`attempts`)."""

from __future__ import annotations

from typing import Final

from swingbot.core.plan.leases import Lease
from swingbot_db.store.rows import Rows

# An attempt on a cluster has several rows; the row of the testbox named by its order comes first.
_OWN_FIRST: Final = (
    "FROM lease l JOIN attempt a ON a.id = l.attempt JOIN orders o ON o.id ="
    " a.order_id WHERE l.attempt = :a ORDER BY l.testbox <> o.testbox, l.testbox FOR UPDATE OF l"
)


class Leases(Rows):
    def lock(self, attempt: int) -> Lease | None:
        row = self.select_one(
            "SELECT l.testbox, l.holder, l.until, l.fence,"
            f" extract(epoch FROM l.until - clock_timestamp())::float AS rest {_OWN_FIRST}",
            a=attempt,
        )
        return None if row is None else Lease(**row._mapping)

    def hold(self, attempt: int, controller: str, fence: int | None, seconds: float) -> int:
        if fence is None:
            fence = int(self.scalar("SELECT nextval('lease_fence_seq')"))
        self.execute(
            "UPDATE lease SET holder = :holder, fence = :fence,"
            " until = clock_timestamp() + make_interval(secs => :seconds) WHERE attempt = :a",
            holder=controller,
            fence=fence,
            seconds=seconds,
            a=attempt,
        )
        return fence

    def testboxes(self, attempt: int) -> list[str]:
        return [row.testbox for row in self.select(f"SELECT l.testbox {_OWN_FIRST}", a=attempt)]
