"""What a boot came to. A verdict says something about the kernel; a fault of the lab is an InfraError."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BootStatus(StrEnum):
    UP = "up"  # the job was gone through to its end
    PANICKED = "panicked"  # the kernel gave up, or the machine ended by itself before the job did
    OOPSED = "oopsed"  # the kernel found itself broken, whether or not the job ended
    HUNG = "hung"  # console and results went quiet
    TIMED_OUT = "timed_out"  # it went on, for longer than it may


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`reason` is one sentence or the first telling line of the console; None exactly when `up`."""

    status: BootStatus
    reason: str | None = None
