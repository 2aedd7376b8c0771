"""Limits of a process that works on what a stranger sent; shared by master and workers."""

from __future__ import annotations

import math
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Out of memory, the host ends such a process before its database and the service.
FIRST_OUT_OF_MEMORY: Final = ("choom", "-n", "1000", "--")
_TO_DIE: Final = 5  # processor seconds between SIGXCPU and SIGKILL


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Limits of a process and of each that it starts: private memory, and each file that it writes,
    its output included.

    `seconds` are of processor time, at most those of its time-out. `processes` are those of the
    user with which one of these starts another.
    """

    memory_bytes: int
    file_bytes: int
    seconds: float = math.inf
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
        options = [f"--{name}={_at_most(most, what)}" for name, what, most in limited]
        if (most := min(self.seconds, seconds + 1)) < math.inf:
            options.append(processor_limit(most))
        return ["prlimit", *options, *FIRST_OUT_OF_MEMORY, *argv]


def processor_limit(seconds: float) -> str:
    """Return the option of prlimit for so much processor time.

    At the hard limit Linux sends SIGKILL instead of SIGXCPU, which would not tell why.
    """
    soft = math.ceil(seconds)
    soft, hard = (_at_most(most, resource.RLIMIT_CPU) for most in (soft, soft + _TO_DIE))
    return f"--cpu={soft}:{hard}"


def _at_most(most: int, what: int) -> int:
    """Return `most`, or the limit that this process already has and may not raise."""
    hard = resource.getrlimit(what)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)
