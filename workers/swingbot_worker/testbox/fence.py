"""What a driver asks before it powers or boots a testbox: does its controller still hold the lease?

Two checks complement each other (docs/decisions/0009-fencing.md). A command that can compare, such
as those of the idle system, gets the fencing token of the lease. A power switch cannot compare:
before it is used, the controller makes sure that its lease stays valid while the command runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

VARIABLE: Final = "SWINGBOT_FENCE"


class Fence(Protocol):
    """The lease of an attempt, as its controller knows it."""

    @property
    def token(self) -> int | None:
        """The fencing token; None for a boot by hand, or from a service that issues none."""

    def hold(self, seconds: float) -> None:
        """Wait until the lease is known to be valid for `seconds` more.

        Raises InfraError if that is not so within the order's deadline.
        """


class NoFence:
    """For boots by hand: no service leases the testbox."""

    token: int | None = None

    def hold(self, seconds: float) -> None:
        """Return at once."""


NO_FENCE: Final = NoFence()


def environment(fence: Fence) -> Mapping[str, str]:
    """Return the variable that tells an operator's command the fencing token. Pure."""
    return {} if fence.token is None else {VARIABLE: str(fence.token)}
