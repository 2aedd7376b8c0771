"""Leases, as renewed by controllers of testboxes; the brain takes and returns them (`attempts`)."""

from __future__ import annotations

from typing import Final

from swingbot.core.model.testbox_state import PhaseReported
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

    def hold(self, attempt: int, controller: str, seconds: float) -> str | None:
        """Take or renew the lease of the attempt's testbox for `controller`.

        Returns the refusal while another controller holds it. A build has no lease, so it is
        never refused.
        """
        row = self.select_one(
            "SELECT l.testbox, l.holder, l.until, l.until > clock_timestamp() AS live,"
            " extract(epoch FROM l.until - clock_timestamp())::float AS rest"
            f" {_OWN_FIRST} FOR UPDATE OF l",
            a=attempt,
        )
        if row is None:
            return None
        if row.holder not in (None, controller) and row.live:
            return refusal(row.testbox, row.holder, attempt, row.until, controller)
        # more than `seconds` remain if the clock was set back
        if row.holder != controller or not seconds - RENEW_SECONDS <= row.rest <= seconds:
            self.execute(
                "UPDATE lease SET holder = :holder, until = clock_timestamp() + make_interval(secs"
                " => :seconds) WHERE attempt = :a",
                holder=controller,
                seconds=seconds,
                a=attempt,
            )
        return None

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
