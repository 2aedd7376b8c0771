"""The lease of an attempt's testbox as its executor knows it, by a clock that cannot be set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from swingbot_worker import InfraError

_POLL_SECONDS = 0.2


def boottime() -> float:
    """Seconds since this host was started, suspended time included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What the service says of a lease: its token, and the seconds for which it is valid."""

    fence: int
    seconds: float


@dataclass(slots=True, kw_only=True)
class HeldLease:
    """Renewed by the watchdog of an executor, and asked by the driver (`testbox.fence.Fence`).

    A service that issues no tokens checks every request by itself; its leases count as valid.
    """

    patience: float  # seconds to wait for a service that does not answer
    tell: Callable[[str], None]
    clock: Callable[[], float] = boottime
    token: int | None = None
    _until: float = field(default=math.inf)

    def renew(self, grant: Grant | None, asked: float) -> None:
        """Take over an answer to a question that was sent at `asked` on the clock."""
        if grant is not None:
            self.token, self._until = grant.fence, asked + grant.seconds

    def hold(self, seconds: float) -> None:
        """Wait until the lease is valid for `seconds` more. Raises InfraError."""
        give_up, reported = self.clock() + self.patience, False
        while self._until - self.clock() < seconds:
            if not reported:
                self.tell(
                    "Waiting: the service has not renewed the lease, so another controller may "
                    "have the testbox; it is neither powered nor booted meanwhile."
                )
                reported = True
            if self.clock() > give_up:
                raise InfraError(
                    f"The service did not renew the lease for {self.patience:.0f} s, so another "
                    "controller may have the testbox; it was neither powered nor booted. Check the "
                    "network between this host and the service."
                )
            time.sleep(_POLL_SECONDS)
