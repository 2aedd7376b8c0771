"""Steps of the database's clock, as seen by this process.

Leases and ages are judged by the database's clock, which an operator, a time server or a host that
was suspended may set forward or back. A step is the difference to a clock that cannot be set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Below it a step is indistinguishable from a slow round trip, and changes no decision: a lease is
# renewed 15 s after it was taken and is valid for minutes.
STEP_SECONDS: Final = 30.0
_KEPT: Final = 100


class SteadyClock:
    """A clock that is never set."""

    def look(self, clock: float) -> float:
        return 0.0

    def steady(self) -> float:
        return float("inf")

    def since_step(self) -> float:
        return float("inf")

    def age(self, seconds: float) -> float:
        return seconds


class ClockWatch(SteadyClock):
    """Compares the database's clock with `monotonic`, seconds of a clock that cannot be set."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._since = monotonic()
        self._seen: tuple[float, float] | None = None
        self._steps: list[tuple[float, float]] = []  # (when on `monotonic`, seconds), latest last

    def look(self, clock: float) -> float:
        """Compare with `clock`, seconds of the database's clock read just now.

        Returns by how many seconds it was set forward since the last look; negative: back, 0: not.
        """
        now, before = self._monotonic(), self._seen
        self._seen = (clock, now)
        if before is None:
            return 0.0
        step = (clock - before[0]) - (now - before[1])
        if abs(step) < STEP_SECONDS:
            return 0.0
        self._steps = [*self._steps, (now, step)][-_KEPT:]
        self._since = now
        return step

    def steady(self) -> float:
        """Return for how many seconds this process has looked without seeing a step."""
        return self._monotonic() - self._since

    def since_step(self) -> float:
        """Return the seconds since the last step was seen; infinity if none was."""
        return self.steady() if self._steps else float("inf")

    def age(self, seconds: float) -> float:
        """Correct the age of something by the steps since it began.

        `seconds` is its age by the database's clock, which may be negative after a step back.
        """
        now = self._monotonic()
        for when, step in reversed(self._steps):
            if 0 <= seconds <= now - when:
                break  # it began after this step
            seconds -= step
        return max(0.0, seconds)
