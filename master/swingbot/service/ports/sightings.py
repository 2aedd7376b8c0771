"""Sightings: each bisection that found the culprit of an incident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from swingbot.core.incident.model import Sighting


class Sightings(Protocol):
    """Sightings: each bisection that found the culprit of an incident."""

    def of_incident(self, incident: int) -> list[Sighting]:
        """Return the sightings of an incident by number."""

    def like(self, commit: str, patch_id: str | None) -> list[Sighting]:
        """Return the sightings of this commit, or of this patch in any tree, by number."""

    def to_identify(self) -> list[Sighting]:
        """Return the sightings whose patch-id was not computed yet, by number."""

    def to_attribute(self) -> list[Sighting]:
        """Return the sightings of open incidents found by watching that are not measured against
        the parent yet, by number.
        """

    def to_tell(self) -> list[Sighting]:
        """Return the sightings of open incidents that are measured against the parent and in no
        mail yet, by number.
        """

    def add(self, incident: int, bisection: int, culprit: int, patch_id: str | None) -> bool:
        """Store that `bisection` found `culprit`, and add the bisection to the incident.

        Returns False if it was stored before, for any incident.
        """

    def identify(self, sighting: int, patch_id: str) -> None:
        """Set the patch-id; "" if the commit has none. Only the first call counts."""

    def set_comparison(self, sighting: int, comparison: int, report: int | None = None) -> None:
        """Set the comparison that measured a sighting, and the mail that already reported it.

        Only the first call counts; an incident without a comparison gets it too.
        """

    def move(self, sightings: Sequence[int], incident: int) -> None:
        """Move sightings and their bisections to `incident`, which gets a comparison of theirs if
        it has none.
        """
