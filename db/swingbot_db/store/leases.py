"""Leases as the controllers of testboxes renew them; the brain takes and returns them (`attempts`)."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.testbox_state import PhaseReported
from swingbot.core.plan.testbox_rules import refusal
from swingbot_db.store.rows import Rows
from swingbot_db.store.testboxes import Testboxes

# A renewal is written when it is worth this much: an executor asks every 5 s, the row need not change each time.
RENEW_SECONDS: Final = 15.0
# Of an attempt on a cluster several rows: the one of the testbox that its order names comes first.
_OWN_FIRST = "FROM lease l JOIN attempt a ON a.id = l.attempt JOIN orders o ON o.id = a.order_id WHERE l.attempt = :a ORDER BY l.testbox <> o.testbox, l.testbox"


class Leases(Rows):
    """A row of `lease` says which attempt has the testbox; its holder is the controller that drives it, and is lost after `until`."""

    def hold(self, attempt: int, controller: str, seconds: float) -> str | None:
        """Take or renew the lease of the attempt's testbox for `controller`; why not, while another one holds it. A build has none: nothing is refused."""
        row = self.select_one(
            "SELECT l.testbox, l.holder, l.until, l.until > clock_timestamp() AS live, extract(epoch FROM l.until - clock_timestamp())::float AS rest"
            f" {_OWN_FIRST} FOR UPDATE OF l",
            a=attempt,
        )
        if row is None:
            return None
        if row.holder not in (None, controller) and row.live:
            return refusal(row.testbox, row.holder, attempt, row.until, controller)
        if row.holder != controller or row.rest < seconds - RENEW_SECONDS:
            self.execute(
                "UPDATE lease SET holder = :holder, until = clock_timestamp() + make_interval(secs => :seconds) WHERE attempt = :a",
                holder=controller,
                seconds=seconds,
                a=attempt,
            )
        return None

    def tell_phase(self, attempt: int, phase: str, why: str) -> bool:
        """What the worker says that its testbox does; False if the attempt has it no more. The nodes of a cluster do the same, but who is lost is named."""
        testboxes = [
            row.testbox
            for row in self.select(f"SELECT l.testbox {_OWN_FIRST} FOR UPDATE OF l", a=attempt)
        ]
        for number, testbox in enumerate(testboxes):
            if number == 0 or phase != "lost" or f" {testbox}:" in why:
                Testboxes(self.conn).move(testbox, PhaseReported(phase, why, attempt))
        return bool(testboxes)
