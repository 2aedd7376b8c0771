"""Sightings: each bisection that found the culprit of an incident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot.core.incident.model import Sighting


class Sightings(Protocol):
    """Sightings: each bisection that found the culprit of an incident."""

    def of_incident(self, incident: int) -> list[Sighting]:
        """Sightings of an incident by number."""

    def like(self, commit: str, patch_id: str | None) -> list[Sighting]:
        """Sightings of this commit, or of this patch in whatever tree, by number."""

    def to_identify(self) -> list[Sighting]:
        """Sightings whose patch id was not looked at yet, by number."""

    def to_attribute(self) -> list[Sighting]:
        """Sightings of open incidents that watching found and that are not measured against the parent yet, by number."""

    def to_tell(self) -> list[Sighting]:
        """Sightings of open incidents that are measured against the parent and in no mail yet, by number."""

    def add(self, incident: int, bisection: int, culprit: int, patch_id: str | None) -> bool:
        """Store that `bisection` found `culprit`, and the bisection as one of the incident's; false if it was noted before, under whatever incident."""

    def identify(self, sighting: int, patch_id: str) -> None:
        """Set the patch id; "" if the commit has none. The first call counts."""

    def set_comparison(self, sighting: int, comparison: int, report: int | None = None) -> None:
        """Name the comparison that measured a sighting, and the mail that told of it already. The first call counts; an incident without a comparison takes it too."""

    def move(self, sightings: Sequence[int], incident: int) -> None:
        """Make sightings those of `incident`, and its bisections with them; the incident takes a comparison of theirs if it has none."""
