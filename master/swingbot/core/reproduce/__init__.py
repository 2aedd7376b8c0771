"""What a reader needs to see a report's numbers on a machine of his own: plain facts in, names and texts out."""

from __future__ import annotations

from swingbot.core.reproduce.kit import (
    Kit,
    KitArtifact,
    KitBoot,
    KitKernel,
    KitMember,
    KitOmission,
    KitRootfs,
    KitRun,
    KitText,
)
from swingbot.core.reproduce.kit_members import members

__all__ = [
    "Kit",
    "KitArtifact",
    "KitBoot",
    "KitKernel",
    "KitMember",
    "KitOmission",
    "KitRootfs",
    "KitRun",
    "KitText",
    "members",
]
