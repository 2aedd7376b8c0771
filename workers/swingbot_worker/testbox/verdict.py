"""The result of a boot.

A verdict is about the kernel; an infrastructure failure is an InfraError.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BootStatus(StrEnum):
    UP = "up"  # the job completed
    # the kernel panicked, or the machine reset or powered off before the job completed
    PANICKED = "panicked"
    OOPSED = "oopsed"  # the kernel reported an oops, whether or not the job completed
    HUNG = "hung"  # console and results went quiet
    # a limit of ours ended the boot, which says nothing about the kernel: the outcome is `infra`
    LIMIT = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`reason` is one sentence or the first significant console line; None if and only if `up`."""

    status: BootStatus
    reason: str | None = None
