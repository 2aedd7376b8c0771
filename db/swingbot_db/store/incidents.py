"""Incidents and the reports about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model.records import Swing
from swingbot_db import reports
from swingbot_db.store.comparisons import ComparisonRows
from swingbot_db.store.kernels import KernelRows

# From each bisection `low` to itself and to those above it, of whose blamed merge it searches the branch.
UPWARDS: Final = """WITH RECURSIVE upwards AS (SELECT id AS low, id, parent FROM bisection
  UNION ALL SELECT u.low, b.id, b.parent FROM upwards u JOIN bisection b ON b.id = u.parent)"""


class IncidentRows(KernelRows, ComparisonRows):
    def add_incident(self, tree: int, culprit: int, bisection: int) -> int:
        self.do("INSERT INTO incident (tree, culprit) VALUES (:tree, :culprit) ON CONFLICT DO NOTHING", tree=tree, culprit=culprit)
        number = self.value("SELECT id FROM incident WHERE tree = :tree AND culprit = :culprit", tree=tree, culprit=culprit)
        self.do("INSERT INTO incident_bisection (incident, bisection) VALUES (:i, :b) ON CONFLICT DO NOTHING", i=number, b=bisection)
        assert isinstance(number, int)
        return number

    def set_incident_comparison(self, incident: int, comparison: int) -> None:
        self.do("UPDATE incident SET comparison = :c WHERE id = :i AND comparison IS NULL", i=incident, c=comparison)

    def incidents_to_attribute(self) -> list[tuple[int, int, int, int]]:
        """(incident, tree, culprit variant, bisection) of incidents found by watching that have no comparison of parent and culprit yet."""
        rows = self.all(
            "SELECT i.id, i.tree, i.culprit, min(ib.bisection) AS bisection FROM incident i JOIN incident_bisection ib ON ib.incident = i.id"
            " JOIN bisection b ON b.id = ib.bisection AND b.origin = 'watch' WHERE i.comparison IS NULL AND i.status = 'open' GROUP BY i.id ORDER BY i.id"
        )
        return [(row.id, row.tree, row.culprit, row.bisection) for row in rows]

    def comparisons_being_attributed(self) -> list[int]:
        """Comparisons whose swing led to a culprit that is not yet measured against its parent: their other swings wait for that."""
        rows = self.all(
            f"{UPWARDS} SELECT DISTINCT s.comparison FROM swing s JOIN upwards u ON u.id = s.bisection"
            " JOIN incident_bisection ib ON ib.bisection = u.low JOIN incident i ON i.id = ib.incident"
            " LEFT JOIN comparison c ON c.id = i.comparison WHERE i.status = 'open' AND (c.id IS NULL OR c.status IN ('waiting', 'running'))"
        )
        return [row.comparison for row in rows]

    def incidents_to_report(self) -> list[tuple[int, int]]:
        """(incident, comparison) of open incidents whose comparison is over and that have no report."""
        rows = self.all(
            "SELECT i.id, i.comparison FROM incident i JOIN comparison c ON c.id = i.comparison AND c.status IN ('done', 'failed')"
            " WHERE i.status = 'open' AND NOT EXISTS (SELECT FROM report WHERE incident = i.id) ORDER BY i.id"
        )
        return [(row.id, row.comparison) for row in rows]

    def bisections_of_incident(self, incident: int) -> list[int]:
        return [row.bisection for row in self.all("SELECT bisection FROM incident_bisection WHERE incident = :i ORDER BY bisection", i=incident)]

    def conclusion(self, bisection: int) -> dict[str, Any]:
        found = self.value("SELECT conclusion FROM bisection WHERE id = :b", b=bisection)
        assert isinstance(found, dict)
        return found

    def swings_of_bisection(self, bisection: int) -> list[Swing]:
        """Swings that it was opened for; those of the bisection whose blamed merge it searches are its own too."""
        own = set(self.conn.execute(sa.text(f"{UPWARDS} SELECT id FROM upwards WHERE low = :b"), {"b": bisection}).scalars())
        return [swing for swing in self.swings("open", "bisecting", "explained", "noted", "not_found") if swing.bisection in own]

    def boot_facts(self, image: str, testbox: str) -> dict[str, Any]:
        found = self.value(
            "SELECT facts FROM boot WHERE image_sha256 = :image AND testbox = :box AND outcome = 'up' ORDER BY id DESC LIMIT 1", image=image, box=testbox
        )
        return dict(found or {})

    def reserve_report(self) -> int:
        """The number of a report that is about to be written; its mail names it."""
        return reports.reserve_report_id(self.conn)

    def add_report(
        self,
        *,
        number: int,
        incident: int,
        kind: str,
        revision: int,
        message_id: str,
        to: Sequence[str],
        subject: str,
        body: str,
        message: bytes,
        state: str,
    ) -> int:
        return reports.add_report(
            self.conn,
            id=number,
            incident=incident,
            kind=kind,
            revision=revision,
            message_id=message_id,
            to=to,
            cc=(),
            subject=subject,
            body=body,
            message=message,
            state=state,
        )
