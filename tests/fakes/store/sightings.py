"""Sightings in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from swingbot.core.incident.model import Sighting
from tests.fakes.store.tables import Noun, SightingRow


class Sightings(Noun):
    def _where(self, wanted: Callable[[SightingRow], bool]) -> list[Sighting]:
        return [
            Sighting(
                id=row.id,
                incident=row.incident,
                bisection=row.bisection,
                culprit=row.culprit,
                tree=self.db.variants[row.culprit].tree,
                commit=self.db.variants[row.culprit].commit,
                patch_id=row.patch_id,
                comparison=row.comparison,
                report=row.report,
            )
            for row in self.db.sightings.values()
            if wanted(row)
        ]

    def of_incident(self, incident: int) -> list[Sighting]:
        return self._where(lambda s: s.incident == incident)

    def like(self, commit: str, patch_id: str | None) -> list[Sighting]:
        return self._where(
            lambda s: (
                self.db.variants[s.culprit].commit == commit
                or bool(patch_id and s.patch_id == patch_id)
            )
        )

    def to_identify(self) -> list[Sighting]:
        return self._where(lambda s: s.patch_id is None)

    def _open(self, row: SightingRow) -> bool:
        return self.db.incidents[row.incident].status == "open"

    def to_attribute(self) -> list[Sighting]:
        return self._where(
            lambda s: (
                s.comparison is None
                and self._open(s)
                and self.db.bisections[s.bisection].bisection.origin == "watch"
            )
        )

    def to_tell(self) -> list[Sighting]:
        return self._where(lambda s: s.report is None and self._open(s) and measured(self.db, s))

    def add(self, incident: int, bisection: int, culprit: int, patch_id: str | None) -> bool:
        known = {(row.bisection, row.culprit) for row in self.db.sightings.values()}
        new = (bisection, culprit) not in known
        if new:
            number = self.db.next_id("sighting")
            self.db.sightings[number] = SightingRow(
                id=number,
                incident=incident,
                bisection=bisection,
                culprit=culprit,
                patch_id=patch_id,
            )
        self.db.incident_bisections[incident, bisection] = None
        return new

    def _put(self, sighting: int, **values: Any) -> None:
        self.db.sightings[sighting] = replace(self.db.sightings[sighting], **values)

    def identify(self, sighting: int, patch_id: str) -> None:
        if self.db.sightings[sighting].patch_id is None:
            self._put(sighting, patch_id=patch_id)

    def set_comparison(self, sighting: int, comparison: int, report: int | None = None) -> None:
        row = self.db.sightings[sighting]
        if row.comparison is None:
            self._put(sighting, comparison=comparison, report=report)
        incident = self.db.incidents[row.incident]
        if incident.comparison is None:
            self.db.incidents[incident.id] = replace(incident, comparison=comparison)

    def move(self, sightings: Sequence[int], incident: int) -> None:
        for number in sightings:
            self._put(number, incident=incident)
            self.db.incident_bisections[incident, self.db.sightings[number].bisection] = None
        pairs = {(row.incident, row.bisection) for row in self.db.sightings.values()}
        for key in list(self.db.incident_bisections):
            if key not in pairs:
                del self.db.incident_bisections[key]
        known = self.db.incidents[incident]
        taken = (s.comparison for s in self.of_incident(incident) if s.comparison is not None)
        if known.comparison is None:
            self.db.incidents[incident] = replace(known, comparison=next(taken, None))


def measured(db: Any, row: SightingRow) -> bool:
    """Whether nothing more will be measured for a sighting, and it was not called off."""
    return row.comparison is not None and db.comparisons[row.comparison].comparison.status in (
        "done",
        "failed",
    )
