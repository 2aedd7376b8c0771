"""The purpose of a boot. Its number k counts the boots of one kernel for one purpose, from 0.

The purpose is part of a boot's key and determines its perturbation. Boots with different purposes
are thus never the same boot, and they differ on a repeatable testbox, however many boots either
purpose has. Base and head of one purpose share their perturbations.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from swingbot_jobs.contract import orders


class BootPurpose(StrEnum):
    """The purpose of a boot. Values are part of stored keys and never change."""

    # Comparisons of tips or on request, pairs that prove a swing (numbered after the boots that
    # raised it), and bisections, which start with these pairs. Fresh boots take the next numbers.
    SEARCH = orders.SEARCH
    # A culprit against its parent. Printed numbers come from boots that neither raised the alarm
    # nor took part in the search.
    FRESH = "fresh"
    # A known kernel booted again to see whether the testbox has drifted.
    ANCHOR = "anchor"
    # A night of boots of a known kernel that shows what a testbox can resolve.
    SCREEN = orders.SCREEN
    # A night of a known kernel in which one boot after another lacks an item of the tuning list.
    DOCTOR = "doctor"
    # The parent of a culprit against a tip with the fix.
    FIX = "fix"
    # The gates of proof. A repeated gate has a purpose of its own, see `of_gate`.
    GATE = "gate"


NIGHTS: Final = (BootPurpose.SCREEN, BootPurpose.DOCTOR)


def of_gate(tries: int) -> str:
    """Return the purpose of the boots of a gate requested for the `tries`-th time (from 1)."""
    return BootPurpose.GATE if tries == 1 else f"{BootPurpose.GATE}-{tries}"
