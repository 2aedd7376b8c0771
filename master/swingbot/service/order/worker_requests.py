"""What workers ask and report about their attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from swingbot.core.access.uploads import UploadLimits, UploadUsage, refusal
from swingbot.core.model.dispatch import Delivery
from swingbot.core.model.testbox_state import LeaseHeld, LeaseRefused, PhaseReported
from swingbot.core.plan.deliveries import delivery_of
from swingbot.core.plan.leases import claim, hears_phase
from swingbot.core.plan.testbox_rules import TestboxRules
from swingbot.service.ports.transaction import OpenTransaction


@dataclass(frozen=True, slots=True)
class WorkerRequests:
    """Each request is one transaction."""

    begin: OpenTransaction
    lease_seconds: float = TestboxRules().lease_seconds

    def deliver(self, attempt: int, outcome: Mapping[str, Any]) -> Delivery:
        """Store the outcome of an attempt, once. Repeated, late and conflicting ones do not
        count.
        """
        with self.begin("deliver outcome") as tx:
            delivery, new = delivery_of(tx.attempts.find(attempt, lock=True), attempt, outcome)
            if new and delivery is Delivery.STORED:
                tx.attempts.end(attempt, outcome)
            elif new:
                tx.attempts.keep_late(attempt, outcome)
        return delivery

    def wanted(self, attempt: int) -> bool | None:
        """Return whether the work is still needed; None if the attempt does not exist."""
        with self.begin("attempt wanted") as tx:
            stored = tx.attempts.find(attempt)
            return None if stored is None else stored.wanted

    def brought(self, attempt: int, sha256: str) -> UploadUsage | None:
        """Return the uploads apart from this file; None if the attempt does not exist."""
        with self.begin("uploads") as tx:
            return tx.attempts.uploads(attempt, sha256)

    def admit(self, attempt: int, sha256: str, size: int, cap: UploadLimits) -> str | None:
        """Count a file of `size` bytes against the cap; return the refusal or None.

        The same file counts once.
        """
        with self.begin("admit file") as tx:
            tx.attempts.find(attempt, lock=True)  # one upload or outcome at a time
            brought = tx.attempts.uploads(attempt, sha256)
            if brought is None:
                return "this attempt does not exist"
            refused = refusal(brought, size, cap)
            if refused is None:
                tx.attempts.add_upload(attempt, sha256, size)
        return refused

    def hold(self, attempt: int, controller: str) -> LeaseHeld | LeaseRefused | None:
        """Take or renew the lease of the attempt's testbox for `controller`.

        None if the attempt has no lease: it is a build, or over.
        """
        with self.begin("lease held") as tx:
            lease = tx.leases.lock(attempt)
            if lease is None:
                return None
            answer = claim(lease, attempt, controller, self.lease_seconds)
            if answer is not None:
                return answer
            fence = tx.leases.hold(
                attempt, controller, lease.fence_of(controller), self.lease_seconds
            )
        return LeaseHeld(fence=fence, seconds=self.lease_seconds)

    def tell_phase(self, attempt: int, phase: str, why: str) -> bool:
        """Store the phase of the attempt's testboxes; False if it no longer holds one."""
        with self.begin("phase report") as tx:
            testboxes = tx.leases.testboxes(attempt)
            for number, testbox in enumerate(testboxes):
                if hears_phase(testbox, number == 0, phase, why):
                    tx.testboxes.move(testbox, PhaseReported(phase, why, attempt))
        return bool(testboxes)
