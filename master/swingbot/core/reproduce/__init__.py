"""Reproduction kits: everything needed to repeat reported boots on another machine."""

from __future__ import annotations

from swingbot.core.reproduce.kit import (
    Change,
    Headline,
    Kit,
    KitArtifact,
    KitBoot,
    KitKernel,
    KitMember,
    KitOmission,
    KitRootfs,
    KitRun,
    KitText,
    Payload,
    ReportKit,
    Row,
    TableKit,
    boot_ids,
    kind_of,
)
from swingbot.core.reproduce.kit_members import members

__all__ = [
    "Change",
    "Headline",
    "Kit",
    "KitArtifact",
    "KitBoot",
    "KitKernel",
    "KitMember",
    "KitOmission",
    "KitRootfs",
    "KitRun",
    "KitText",
    "Payload",
    "ReportKit",
    "Row",
    "TableKit",
    "boot_ids",
    "kind_of",
    "members",
]
