"""What a boot is for. Its number k counts the boots of one kernel for one purpose, from 0 on.

The purpose is part of a boot's key and decides its perturbation, so that boots of two purposes are never the same boot
and differ on a repeatable testbox, however many boots either purpose has; base and head of one purpose share theirs.

Boots that were made before there were purposes have the purpose `search`, and numbers from 100 on where they were for
something else. Comparisons of that time keep the purpose and the numbers that they began with.
"""

from __future__ import annotations

from enum import StrEnum

from swingbot_jobs.contract import orders


class BootPurpose(StrEnum):
    """What a boot is for. A value is part of stored keys and never changes."""

    # Comparisons of tips and those a person asks for, the pairs that prove a swing (numbered after the boots that
    # raised it), and bisections, which begin with these pairs. One that is booted afresh takes the numbers that follow.
    SEARCH = orders.SEARCH
    # A culprit against its parent: the numbers that a mail prints come from boots that neither raised the alarm nor searched.
    FRESH = "fresh"
    # A known kernel booted again, to see whether the testbox moved.
    ANCHOR = "anchor"
    # The parent of a culprit against a tip that has its fix.
    FIX = "fix"
    # The gates of proof; those of a gate asked for again have a purpose of their own, see `of_gate`.
    GATE = "gate"


def of_gate(tries: int) -> str:
    """The purpose of the boots of a gate that is asked for the `tries`-th time (from 1)."""
    return BootPurpose.GATE if tries == 1 else f"{BootPurpose.GATE}-{tries}"
