"""Leases, as renewed by controllers of testboxes; the brain takes and returns them (`attempts`)."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.testbox_state import LeaseHeld, LeaseRefused, PhaseReported
from swingbot.core.plan.testbox_rules import refusal
from swingbot_db.store.rows import Rows
from swingbot_db.store.testboxes import Testboxes

# Renew only if that gains this much: an executor asks every 5 s, which need not write each time.
RENEW_SECONDS: Final = 15.0
# An attempt on a cluster has several rows; the row of the testbox named by its order comes first.
_OWN_FIRST = (
    "FROM lease l JOIN attempt a ON a.id = l.attempt JOIN orders o ON o.id ="
    " a.order_id WHERE l.attempt = :a ORDER BY l.testbox <> o.testbox, l.testbox"
)


class Leases(Rows):
    """A row of `lease` says which attempt has the testbox, and which controller drives it.

    The controller counts as lost after `until`.
    """

    def hold(
        self, attempt: int, controller: str, seconds: float
    ) -> LeaseHeld | LeaseRefused | None:
        """Take or renew the lease of the attempt's testbox for `controller`.

        A controller that takes it gets a new fencing token, and keeps it while it renews the lease.
        Returns None if the attempt has no lease: it is a build, or over.
        """
        row = self.select_one(
            "SELECT l.testbox, l.holder, l.until, l.until > clock_timestamp() AS live, l.fence,"
            " extract(epoch FROM l.until - clock_timestamp())::float AS rest"
            f" {_OWN_FIRST} FOR UPDATE OF l",
            a=attempt,
        )
        if row is None:
            return None
        if row.holder not in (None, controller) and row.live:
            return LeaseRefused(
                why=refusal(row.testbox, row.holder, attempt, row.until, controller)
            )
        # more than `seconds` remain if the clock was set back
        kept = row.holder == controller and row.fence is not None
        if kept and seconds - RENEW_SECONDS <= row.rest <= seconds:
            return LeaseHeld(fence=row.fence, seconds=row.rest)
        fence = row.fence if kept else int(self.scalar("SELECT nextval('lease_fence_seq')"))
        self.execute(
            "UPDATE lease SET holder = :holder, fence = :fence,"
            " until = clock_timestamp() + make_interval(secs => :seconds) WHERE attempt = :a",
            holder=controller,
            fence=fence,
            seconds=seconds,
            a=attempt,
        )
        return LeaseHeld(fence=fence, seconds=seconds)

    def tell_phase(self, attempt: int, phase: str, why: str) -> bool:
        """Store the phase reported by the worker; False if the attempt no longer holds the testbox.

        All nodes of a cluster get the same phase, except that a lost node is named.
        """
        testboxes = [
            row.testbox
            for row in self.select(f"SELECT l.testbox {_OWN_FIRST} FOR UPDATE OF l", a=attempt)
        ]
        for number, testbox in enumerate(testboxes):
            if number == 0 or phase != "lost" or f" {testbox}:" in why:
                Testboxes(self.conn).move(testbox, PhaseReported(phase, why, attempt))
        return bool(testboxes)
