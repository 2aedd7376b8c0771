"""Incidents: one per culprit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from swingbot.core.incident.model import Expected, Incident
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.statuses import IncidentAct, IncidentStatus
from swingbot_db.store.comparisons import Comparisons
from swingbot_db.store.fragments import COMPARISON_OVER, FAMILY, UPWARDS
from swingbot_db.store.rows import Rows, records
from swingbot_db.store.sightings import Sightings

# A first mail waits for all measurements of its culprit; later findings go into an update.
_TO_REPORT: Final = f"""{FAMILY} SELECT i.id, i.comparison FROM incident i
  JOIN comparison c ON c.id = i.comparison AND {COMPARISON_OVER}
  WHERE i.status = 'open'
    AND NOT EXISTS (SELECT FROM report r JOIN family f ON f.id = r.incident WHERE f.root = i.id
      AND r.kind = 'first' AND r.withdrawn IS NULL)
    AND EXISTS (SELECT FROM sighting s WHERE s.incident = i.id AND s.report IS NULL)
    AND NOT EXISTS (SELECT FROM sighting s JOIN bisection b ON b.id = s.bisection
      LEFT JOIN comparison o ON o.id = s.comparison
                    WHERE s.incident = i.id AND b.origin = 'watch' AND (o.id IS NULL
                      OR o.status IN ('waiting', 'running')))
  ORDER BY i.id FOR UPDATE OF i"""  # decisions of people wait, and then see the new mail
_EXPECTED: Final = """SELECT i.id AS incident, v.commit, min(s.patch_id) AS patch_id,
    (array_agg(coalesce(r.change_pct, found.pct)
      ORDER BY r.change_pct IS NULL, s.id DESC))[1] AS change_pct
  FROM incident i JOIN sighting s ON s.incident = i.id JOIN variant v ON v.id = s.culprit
    JOIN bisection b ON b.id = s.bisection
  LEFT JOIN comparison_row r ON r.comparison = s.comparison
    AND (r.testbox, r.unit_job, r.metric) = (:testbox, :job, :metric)
    AND r.verdict IN ('worse', 'better', 'changed')
  LEFT JOIN LATERAL (SELECT (c ->> 'change_pct')::double precision AS pct
    FROM jsonb_array_elements(b.conclusion -> 'culprits') c
    WHERE c ->> 'commit' = v.commit AND (b.testbox, b.unit_job, b.metric)
      = (:testbox, :job, :metric) LIMIT 1) found ON true
  WHERE i.status = 'expected' AND coalesce(r.change_pct, found.pct) IS NOT NULL
    GROUP BY i.id, v.commit ORDER BY i.id, v.commit"""


class Incidents(Rows):
    def expected_changes(self, testbox: str, unit_job: str, metric: str) -> list[Expected]:
        return [
            Expected(**row._mapping)
            for row in self.select(_EXPECTED, testbox=testbox, job=unit_job, metric=metric)
        ]

    def add(self, tree: int, culprit: int) -> int:
        self.execute(
            "INSERT INTO incident (tree, culprit) VALUES (:tree, :culprit) ON CONFLICT DO NOTHING",
            tree=tree,
            culprit=culprit,
        )
        return int(
            self.scalar(
                "SELECT id FROM incident WHERE tree = :tree AND culprit = :culprit",
                tree=tree,
                culprit=culprit,
            )
        )

    def get(self, number: int) -> Incident | None:
        matches = self._incidents("i.id = :id", "FOR UPDATE OF i", id=number)
        return matches[0] if matches else None

    def of_culprit(self, tree: int, culprit: int) -> Incident | None:
        matches = self._incidents(
            "i.tree = :tree AND i.culprit = :culprit", tree=tree, culprit=culprit
        )
        return matches[0] if matches else None

    def in_status(self, *statuses: IncidentStatus) -> list[Incident]:
        return self._incidents("i.status = ANY(:statuses)", statuses=list(statuses))

    def _incidents(self, where: str, more: str = "", **values: Any) -> list[Incident]:
        rows = self.select(
            "SELECT i.id, i.tree, i.culprit, v.commit, i.status, i.comparison, i.merged_into,"
            " i.fixed_by, i.fix_check"
            f" FROM incident i JOIN variant v ON v.id = i.culprit WHERE {where} ORDER BY i.id"
            f" {more}",
            **values,
        )
        return records(Incident, rows)

    def set_status(
        self, number: int, status: IncidentStatus, merged_into: int | None = None
    ) -> None:
        self.execute(
            "UPDATE incident SET status = :status, merged_into = :into WHERE id = :id",
            id=number,
            status=status,
            into=merged_into,
        )

    def set_fix(self, number: int, commit: str | None, check: int | None) -> None:
        self.execute(
            "UPDATE incident SET fixed_by = :commit, fix_check = :check WHERE id = :id",
            id=number,
            commit=commit,
            check=check,
        )

    def add_event(
        self,
        incident: int,
        act: IncidentAct,
        who: str,
        reason: str | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        self.execute(
            "INSERT INTO incident_event (incident, act, who, reason, detail) VALUES (:i, :act,"
            " :who, :reason, CAST(:detail AS jsonb))",
            i=incident,
            act=act,
            who=who,
            reason=reason,
            detail=json.dumps(detail or {}),
        )

    def last_event(
        self, incident: int, act: IncidentAct
    ) -> tuple[str | None, Mapping[str, Any]] | None:
        row = self.select_one(
            "SELECT reason, detail FROM incident_event WHERE incident = :i AND act = :act ORDER BY"
            " id DESC LIMIT 1",
            i=incident,
            act=act,
        )
        return (row.reason, row.detail) if row else None

    def comparisons_being_attributed(self) -> list[int]:
        rows = self.select(
            f"{UPWARDS} SELECT DISTINCT s.comparison FROM swing s JOIN upwards u ON u.id ="
            " s.bisection"
            " JOIN sighting g ON g.bisection = u.low JOIN incident i ON i.id = g.incident"
            " LEFT JOIN comparison c ON c.id = g.comparison WHERE i.status = 'open' AND (c.id IS"
            " NULL OR c.status IN ('waiting', 'running'))"
        )
        return [row.comparison for row in rows]

    def to_report(self) -> list[tuple[int, int]]:
        return [(row.id, row.comparison) for row in self.select(_TO_REPORT)]

    def bisections(self, incident: int) -> list[int]:
        rows = self.select(
            "SELECT ib.bisection FROM incident_bisection ib JOIN incident i ON i.id = ib.incident"
            " LEFT JOIN sighting s ON s.bisection = ib.bisection"
            " AND s.incident = i.id AND s.comparison = i.comparison WHERE i.id = :i GROUP BY"
            " ib.bisection ORDER BY count(s.id) = 0, ib.bisection",
            i=incident,
        )
        return [row.bisection for row in rows]

    def rows(self, incident: int, comparison: int) -> list[ComparisonRow]:
        rows = Comparisons(self.conn).rows(comparison)
        keys = {row.key for row in rows}
        for other in dict.fromkeys(
            s.comparison
            for s in Sightings(self.conn).of_incident(incident)
            if s.comparison not in (None, comparison)
        ):
            assert other is not None
            more = [row for row in Comparisons(self.conn).rows(other) if row.key not in keys]
            keys |= {row.key for row in more}
            rows += more
        return rows

    def replace_comparison(self, incident: int, old: int, new: int) -> None:
        self.execute(
            "UPDATE incident SET comparison = :new WHERE id = :i AND comparison = :old",
            i=incident,
            old=old,
            new=new,
        )
        self.execute(
            "UPDATE sighting SET comparison = :new WHERE incident = :i AND comparison = :old",
            i=incident,
            old=old,
            new=new,
        )
