"""Reproduction kits: everything needed to repeat reported boots on another machine."""

from __future__ import annotations

from swingbot.core.reproduce.kit import (
    Headline,
    Kit,
    KitArtifact,
    KitBoot,
    KitKernel,
    KitMember,
    KitOmission,
    KitPayload,
    KitRootfs,
    KitRun,
    KitText,
    ReportedChange,
    Row,
    boot_ids,
)
from swingbot.core.reproduce.kit_members import members

__all__ = [
    "Headline",
    "Kit",
    "KitArtifact",
    "KitBoot",
    "KitKernel",
    "KitMember",
    "KitOmission",
    "KitPayload",
    "KitRootfs",
    "KitRun",
    "KitText",
    "ReportedChange",
    "Row",
    "boot_ids",
    "members",
]
