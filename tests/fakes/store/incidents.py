"""Incidents in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from swingbot.core.incident.model import Expected, Incident
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import IncidentAct, IncidentStatus
from tests.fakes.store.comparisons import Comparisons
from tests.fakes.store.sightings import Sightings, measured
from tests.fakes.store.tables import IncidentEventRow, Noun, SightingRow, Tables

OPEN = ("waiting", "running")


class Incidents(Noun):
    def expected_changes(self, testbox: str, unit_job: str, metric: str) -> list[Expected]:
        found: dict[tuple[int, str], list[SightingRow]] = {}
        for row in self.db.sightings.values():
            if self.db.incidents[row.incident].status == "expected":
                commit = self.db.variants[row.culprit].commit
                found.setdefault((row.incident, commit), []).append(row)
        expected = []
        for (incident, commit), rows in sorted(found.items(), key=lambda item: item[0]):
            changes = [
                self._change(row, commit, (testbox, unit_job, metric)) for row in reversed(rows)
            ]
            known = [pct for pct in changes if pct is not None]
            if known:
                ids = [row.patch_id for row in rows if row.patch_id is not None]
                pct = min(known, key=lambda each: not each[1])[0]
                expected.append(
                    Expected(
                        incident=incident,
                        commit=commit,
                        patch_id=min(ids, default=None),
                        change_pct=pct,
                    )
                )
        return expected

    def _change(
        self, row: SightingRow, commit: str, key: tuple[str, str, str]
    ) -> tuple[float, bool] | None:
        """(change in percent, whether it is that of the comparison with the parent)."""
        seen = (
            self.db.rows.get((row.comparison, *key, "first", 1))
            if row.comparison is not None
            else None
        )
        if seen is not None and seen.changed and seen.change_pct is not None:
            return seen.change_pct, True
        bisection = self.db.bisections[row.bisection]
        for culprit in (bisection.conclusion or {}).get("culprits", ()):
            if culprit["commit"] == commit and bisection.bisection.key == key:
                return culprit["change_pct"], False
        return None

    def add(self, tree: int, culprit: int) -> int:
        known = self.of_culprit(tree, culprit)
        if known is not None:
            return known.id
        number = self.db.next_id("incident")
        self.db.incidents[number] = Incident(
            id=number,
            tree=tree,
            culprit=culprit,
            commit=self.db.variants[culprit].commit,
            status="open",
        )
        return number

    def get(self, number: int) -> Incident | None:
        return self.db.incidents.get(number)

    def of_culprit(self, tree: int, culprit: int) -> Incident | None:
        found = (i for i in self.db.incidents.values() if (i.tree, i.culprit) == (tree, culprit))
        return next(found, None)

    def in_status(self, *statuses: IncidentStatus) -> list[Incident]:
        return [i for _, i in sorted(self.db.incidents.items()) if i.status in statuses]

    def set_status(
        self, number: int, status: IncidentStatus, merged_into: int | None = None
    ) -> None:
        self.db.incidents[number] = replace(
            self.db.incidents[number], status=status, merged_into=merged_into
        )

    def set_fix(self, number: int, commit: str | None, check: int | None) -> None:
        self.db.incidents[number] = replace(
            self.db.incidents[number], fixed_by=commit, fix_check=check
        )

    def add_event(
        self,
        incident: int,
        act: IncidentAct,
        who: str,
        reason: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        self.db.incident_events[self.db.next_id("incident event")] = IncidentEventRow(
            incident=incident, act=act, who=who, reason=reason, detail=dict(detail or {})
        )

    def last_event(
        self, incident: int, act: IncidentAct
    ) -> tuple[str | None, Mapping[str, Any]] | None:
        rows = [
            e for e in self.db.incident_events.values() if (e.incident, e.act) == (incident, act)
        ]
        return (rows[-1].reason, rows[-1].detail) if rows else None

    def comparisons_being_attributed(self) -> list[int]:
        found = set()
        for row in self.db.sightings.values():
            status = self.db.incidents[row.incident].status
            known = None if row.comparison is None else self.db.comparisons[row.comparison]
            if status == "open" and (known is None or known.comparison.open):
                above = set(_upwards(self.db, row.bisection))
                found |= {
                    s.swing.comparison
                    for s in self.db.swings.values()
                    if s.swing.bisection in above
                }
        return sorted(found)

    def to_report(self) -> list[tuple[int, int]]:
        return [
            (incident.id, incident.comparison)
            for incident in self.in_status("open")
            if incident.comparison is not None and self._due(incident)
        ]

    def _due(self, incident: Incident) -> bool:
        assert incident.comparison is not None
        rows = [row for row in self.db.sightings.values() if row.incident == incident.id]
        family = family_of(self.db, incident.id)
        return (
            self.db.comparisons[incident.comparison].comparison.status in ("done", "failed")
            and not any(
                r.incident in family and r.kind == "first" and r.withdrawn is None
                for r in self.db.reports.values()
            )
            and any(row.report is None for row in rows)
            and not any(self._under_way(row) for row in rows)
        )

    def _under_way(self, row: SightingRow) -> bool:
        return self.db.bisections[row.bisection].bisection.origin == "watch" and (
            row.comparison is None or self.db.comparisons[row.comparison].comparison.open
        )

    def bisections(self, incident: int) -> list[int]:
        own = self.db.incidents[incident].comparison
        behind = {
            row.bisection
            for row in self.db.sightings.values()
            if row.incident == incident and own is not None and row.comparison == own
        }
        numbers = [b for i, b in self.db.incident_bisections if i == incident]
        return sorted(numbers, key=lambda number: (number not in behind, number))

    def rows(self, incident: int, comparison: int) -> list[ComparisonRow]:
        found = Comparisons(self.db).rows(comparison)
        seen = {row.key for row in found}
        others = (s.comparison for s in Sightings(self.db).of_incident(incident))
        for other in dict.fromkeys(c for c in others if c not in (None, comparison)):
            assert other is not None
            more = [row for row in Comparisons(self.db).rows(other) if row.key not in seen]
            seen |= {row.key for row in more}
            found += more
        return found

    def replace_comparison(self, incident: int, old: int, new: int) -> None:
        known = self.db.incidents[incident]
        if known.comparison == old:
            self.db.incidents[incident] = replace(known, comparison=new)
        for number, row in self.db.sightings.items():
            if (row.incident, row.comparison) == (incident, old):
                self.db.sightings[number] = replace(row, comparison=new)


def family_of(db: Tables, incident: int) -> set[int]:
    """An incident with all that were merged into it."""
    found = {incident}
    while more := {i.id for i in db.incidents.values() if i.merged_into in found} - found:
        found |= more
    return found


def _upwards(db: Tables, bisection: int) -> Iterator[int]:
    """A bisection and those above it."""
    number: int | None = bisection
    while number is not None:
        yield number
        number = db.bisections[number].parent


__all__ = ["Incidents", "family_of", "measured"]
