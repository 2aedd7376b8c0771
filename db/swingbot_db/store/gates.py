"""Proof gates of an incident."""

from __future__ import annotations

import json

from swingbot.core.model.records import (
    Proven,
)
from swingbot.core.proof.gates import GateRow
from swingbot_db.store.comparisons import Comparisons
from swingbot_db.store.rows import Rows, records


class Gates(Rows):
    def open_incidents(self) -> list[int]:
        return [
            row.incident
            for row in self.select(
                "SELECT DISTINCT incident FROM incident_gate WHERE status = 'running' ORDER BY"
                " incident"
            )
        ]

    def incident(self, incident: int) -> Proven | None:
        row = self.select_one(
            "SELECT id, tree, comparison FROM incident WHERE id = :i AND comparison IS NOT NULL",
            i=incident,
        )
        if row is None:
            return None
        comparison = Comparisons(self.conn).get(row.comparison)
        assert comparison is not None
        return Proven(id=row.id, tree=row.tree, comparison=comparison)

    def of_incident(self, incident: int) -> list[GateRow]:
        rows = self.select(
            "SELECT gate, status, reason, comparison, tries, foreseen, detail,"
            " extract(epoch FROM clock_timestamp() - asked_at)::float AS age_seconds FROM"
            " incident_gate WHERE incident = :i ORDER BY gate",
            i=incident,
        )
        return records(GateRow, rows)

    def put(self, incident: int, gate: GateRow) -> None:
        self.execute(
            "INSERT INTO incident_gate AS g (incident, gate, status, reason, comparison, tries,"
            " foreseen, detail, decided_at)"
            " VALUES (:i, :gate, :status, :reason, :comparison, :tries, CAST(:foreseen AS jsonb),"
            " CAST(:detail AS jsonb),"
            " CASE WHEN :over THEN clock_timestamp() END)"
            " ON CONFLICT (incident, gate) DO UPDATE SET status = excluded.status, reason ="
            " excluded.reason, comparison = excluded.comparison,"
            " tries = excluded.tries, foreseen = excluded.foreseen, detail = excluded.detail,"
            " decided_at = excluded.decided_at,"
            " asked_at = CASE WHEN g.tries = excluded.tries THEN g.asked_at ELSE clock_timestamp()"
            " END",
            i=incident,
            gate=gate.gate,
            status=gate.status,
            reason=gate.reason,
            comparison=gate.comparison,
            tries=gate.tries,
            foreseen=None if gate.foreseen is None else json.dumps(dict(gate.foreseen)),
            detail=json.dumps(dict(gate.detail)),
            over=gate.status != "running",
        )
