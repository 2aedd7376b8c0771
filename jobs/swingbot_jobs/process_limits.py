"""Limits of a process that works on what a stranger sent; shared by master and workers."""

from __future__ import annotations

import math
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Out of memory, the host ends such a process before its database and the service.
FIRST_OUT_OF_MEMORY: Final = ("choom", "-n", "1000", "--")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Limits of a process and of each that it starts: private memory, and each file that it writes,
    its output included. Its processor time is limited by its time-out; a service has none.

    `processes` are those of the user with which one of these starts another.
    """

    memory_bytes: int
    file_bytes: int
    processes: int = 8192

    def around(self, argv: Sequence[str], seconds: float) -> list[str]:
        """Return the command line that runs `argv` within these limits, a service for `math.inf`
        seconds.
        """
        limited = [
            ("data", resource.RLIMIT_DATA, self.memory_bytes),
            ("fsize", resource.RLIMIT_FSIZE, self.file_bytes),
            ("nproc", resource.RLIMIT_NPROC, self.processes),
            ("core", resource.RLIMIT_CORE, 0),
        ]
        if seconds < math.inf:
            limited.append(("cpu", resource.RLIMIT_CPU, math.ceil(seconds) + 1))
        options = (f"--{name}={_at_most(most, what)}" for name, what, most in limited)
        return ["prlimit", *options, *FIRST_OUT_OF_MEMORY, *argv]


def _at_most(most: int, what: int) -> int:
    """Return `most`, or the limit that this process already has and may not raise."""
    hard = resource.getrlimit(what)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)
