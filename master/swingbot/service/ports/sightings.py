"""Sightings: each bisection that found the culprit of an incident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot.core.incident.model import Sighting


class Sightings(Protocol):
    """Sightings: each bisection that found the culprit of an incident."""

    def of_incident(self, incident: int) -> list[Sighting]: ...

    def like(self, commit: str, patch_id: str | None) -> list[Sighting]:
        """All of this commit or patch, in whatever tree."""

    def to_identify(self) -> list[Sighting]: ...

    def to_attribute(self) -> list[Sighting]:
        """Found by watching, and not measured against the parent yet."""

    def to_tell(self) -> list[Sighting]:
        """Of open incidents, measured against the parent, and in no mail yet."""

    def add(self, incident: int, bisection: int, culprit: int, patch_id: str | None) -> bool:
        """False if it was noted before."""

    def identify(self, sighting: int, patch_id: str) -> None: ...

    def set_comparison(self, sighting: int, comparison: int, report: int | None = None) -> None:
        """Which comparison measured it, and the mail that told of that comparison already."""

    def move(self, sightings: Sequence[int], incident: int) -> None:
        """Make them those of `incident`, and its bisections with them."""
