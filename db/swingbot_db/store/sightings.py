"""Sightings: each bisection that found the culprit of an incident."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from swingbot.core.incident.model import Sighting
from swingbot_db.store.fragments import COMPARISON_OVER
from swingbot_db.store.rows import Rows

_SIGHTINGS: Final = """SELECT s.id, s.incident, s.bisection, s.culprit, v.tree, v.commit,
  s.patch_id, s.comparison, s.report
  FROM sighting s JOIN variant v ON v.id = s.culprit JOIN incident i ON i.id = s.incident
    JOIN bisection b ON b.id = s.bisection
  LEFT JOIN comparison c ON c.id = s.comparison WHERE {where} ORDER BY s.id"""


class Sightings(Rows):
    def of_incident(self, incident: int) -> list[Sighting]:
        return self._sightings("s.incident = :i", i=incident)

    def like(self, commit: str, patch_id: str | None) -> list[Sighting]:
        return self._sightings(
            "v.commit = :commit OR (s.patch_id <> '' AND s.patch_id = :patch)",
            commit=commit,
            patch=patch_id or None,
        )

    def to_identify(self) -> list[Sighting]:
        return self._sightings("s.patch_id IS NULL")

    def to_attribute(self) -> list[Sighting]:
        return self._sightings("s.comparison IS NULL AND i.status = 'open' AND b.origin = 'watch'")

    def to_tell(self) -> list[Sighting]:
        return self._sightings(f"s.report IS NULL AND i.status = 'open' AND {COMPARISON_OVER}")

    def _sightings(self, where: str, **values: Any) -> list[Sighting]:
        return [
            Sighting(**row._mapping)
            for row in self.select(_SIGHTINGS.format(where=where), **values)
        ]

    def add(self, incident: int, bisection: int, culprit: int, patch_id: str | None) -> bool:
        new = self.execute(
            "INSERT INTO sighting (incident, bisection, culprit, patch_id) VALUES (:i, :b, :v, :p)"
            " ON CONFLICT DO NOTHING",
            i=incident,
            b=bisection,
            v=culprit,
            p=patch_id,
        )
        self.execute(
            "INSERT INTO incident_bisection (incident, bisection) VALUES (:i, :b) ON CONFLICT DO"
            " NOTHING",
            i=incident,
            b=bisection,
        )
        return new == 1

    def identify(self, sighting: int, patch_id: str) -> None:
        self.execute(
            "UPDATE sighting SET patch_id = :p WHERE id = :s AND patch_id IS NULL",
            s=sighting,
            p=patch_id,
        )

    def set_comparison(self, sighting: int, comparison: int, report: int | None = None) -> None:
        self.execute(
            "UPDATE sighting SET comparison = :c, report = :r WHERE id = :s AND comparison IS NULL",
            s=sighting,
            c=comparison,
            r=report,
        )
        self.execute(
            "UPDATE incident SET comparison = :c WHERE comparison IS NULL AND id = (SELECT"
            " incident FROM sighting WHERE id = :s)",
            s=sighting,
            c=comparison,
        )

    def move(self, sightings: Sequence[int], incident: int) -> None:
        self.execute(
            "UPDATE sighting SET incident = :i WHERE id = ANY(:s)", i=incident, s=list(sightings)
        )
        self.execute(
            "INSERT INTO incident_bisection (incident, bisection) SELECT incident, bisection FROM"
            " sighting WHERE id = ANY(:s) ON CONFLICT DO NOTHING",
            s=list(sightings),
        )
        self.execute(
            "DELETE FROM incident_bisection ib WHERE NOT EXISTS (SELECT FROM sighting s WHERE"
            " (s.incident, s.bisection) = (ib.incident, ib.bisection))"
        )
        self.execute(
            "UPDATE incident SET comparison = (SELECT comparison FROM sighting WHERE incident = :i"
            " AND comparison IS NOT NULL ORDER BY id LIMIT 1)"
            " WHERE id = :i AND comparison IS NULL",
            i=incident,
        )
