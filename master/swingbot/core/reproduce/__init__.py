"""What a reader needs to see a report's numbers on a machine of his own: plain facts in, names and texts out."""

from __future__ import annotations

from swingbot.core.reproduce.kit import (
    Artifact,
    Boot,
    Kernel,
    Kit,
    LeftOut,
    Member,
    Rootfs,
    Run,
    Text,
)
from swingbot.core.reproduce.members import members

__all__ = [
    "Artifact",
    "Boot",
    "Kernel",
    "Kit",
    "LeftOut",
    "Member",
    "Rootfs",
    "Run",
    "Text",
    "members",
]
