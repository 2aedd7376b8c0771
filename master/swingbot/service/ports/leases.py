"""Leases of testboxes, as renewed by the controllers that drive them."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.plan.leases import Lease


class Leases(Protocol):
    """Which controller drives the testbox of an attempt; `Attempts` takes and returns leases.

    On a cluster, an attempt has the leases of several testboxes, which one controller holds.
    """

    def lock(self, attempt: int) -> Lease | None:
        """Return the lease of the testbox that the attempt's order names; nobody else renews it
        until the transaction ends. None if the attempt has no lease: it is a build, or over.
        """

    def hold(self, attempt: int, controller: str, fence: int | None, seconds: float) -> int:
        """Make the leases of an attempt valid for `seconds`, and return their fencing token:
        `fence`, or a new one that is greater than all before.
        """

    def testboxes(self, attempt: int) -> list[str]:
        """Return the testboxes that an attempt holds, that of its order first."""
