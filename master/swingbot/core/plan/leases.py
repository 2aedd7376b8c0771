"""Whether a controller may drive the testbox of an attempt."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from swingbot.core.model.testbox_state import LeaseHeld, LeaseRefused

# Renew only if that gains this much: an executor asks every 5 s, which need not write each time.
RENEW_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The lease of a testbox; its controller counts as lost after `until`."""

    testbox: str
    holder: str | None  # None: no controller has begun
    until: datetime | None
    rest: float | None  # seconds until `until`; negative: it is over
    fence: int | None

    def fence_of(self, controller: str) -> int | None:
        """The fencing token that this controller keeps while it renews the lease."""
        return self.fence if self.holder == controller else None


def claim(
    lease: Lease, attempt: int, controller: str, seconds: float
) -> LeaseHeld | LeaseRefused | None:
    """Answer a controller that asks for `seconds`; None if the lease must be taken or renewed."""
    rest = lease.rest or 0.0
    if lease.holder not in (None, controller) and lease.until is not None and rest > 0:
        return LeaseRefused(
            why=f"testbox {lease.testbox} is held by controller {lease.holder} for attempt"
            f" a{attempt} until {lease.until:%H:%M:%S} UTC; controller {controller} must not drive"
            " it: stop one of the two, or wait until the other is done"
        )
    fence = lease.fence_of(controller)
    # more than `seconds` remain if the clock was set back
    if fence is not None and seconds - RENEW_SECONDS <= rest <= seconds:
        return LeaseHeld(fence=fence, seconds=rest)
    return None


def hears_phase(testbox: str, first: bool, phase: str, why: str) -> bool:
    """Return whether a phase is that of this testbox of an attempt: all nodes of a cluster get the
    same phase, except that a lost node is named.
    """
    return first or phase != "lost" or f" {testbox}:" in why
