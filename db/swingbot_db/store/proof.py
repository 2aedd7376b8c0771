"""Gates of proof: what was asked for each culprit, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from swingbot.core.model.records import Proven
from swingbot.core.proof.gates import GateRow
from swingbot_db.store.comparisons import ComparisonRows


class ProofRows(ComparisonRows):
    def incidents_under_proof(self) -> list[int]:
        return [
            row.incident
            for row in self.all(
                "SELECT DISTINCT incident FROM incident_gate WHERE status = 'running' ORDER BY incident"
            )
        ]

    def incident_under_proof(self, incident: int) -> Proven | None:
        """None where there is no such incident, or it was never measured against its parent."""
        row = self.first(
            "SELECT id, tree, comparison FROM incident WHERE id = :i AND comparison IS NOT NULL",
            i=incident,
        )
        if row is None:
            return None
        comparison = self.comparison(row.comparison)
        assert comparison is not None
        return Proven(id=row.id, tree=row.tree, comparison=comparison)

    def gates(self, incident: int) -> list[GateRow]:
        rows = self.all(
            "SELECT gate, status, reason, comparison, tries, foreseen, detail,"
            " extract(epoch FROM clock_timestamp() - asked_at)::float AS age_seconds FROM incident_gate WHERE incident = :i ORDER BY gate",
            i=incident,
        )
        return [GateRow(**row._mapping) for row in rows]

    def put_gate(self, incident: int, gate: GateRow) -> None:
        """Record what is known of a gate now; the time at which it was asked for begins anew with each try."""
        self.do(
            "INSERT INTO incident_gate AS g (incident, gate, status, reason, comparison, tries, foreseen, detail, decided_at)"
            " VALUES (:i, :gate, :status, :reason, :comparison, :tries, CAST(:foreseen AS jsonb), CAST(:detail AS jsonb),"
            " CASE WHEN :over THEN clock_timestamp() END)"
            " ON CONFLICT (incident, gate) DO UPDATE SET status = excluded.status, reason = excluded.reason, comparison = excluded.comparison,"
            " tries = excluded.tries, foreseen = excluded.foreseen, detail = excluded.detail, decided_at = excluded.decided_at,"
            " asked_at = CASE WHEN g.tries = excluded.tries THEN g.asked_at ELSE clock_timestamp() END",
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

    def replace_incident_comparison(self, incident: int, old: int, new: int) -> None:
        """Let another comparison of parent and culprit stand for the incident, and for the sightings that shared the old one."""
        self.do(
            "UPDATE incident SET comparison = :new WHERE id = :i AND comparison = :old",
            i=incident,
            old=old,
            new=new,
        )
        self.do(
            "UPDATE sighting SET comparison = :new WHERE incident = :i AND comparison = :old",
            i=incident,
            old=old,
            new=new,
        )

    def doubted_comparison(self, comparison: int) -> int | None:
        """The comparison that this one, with more boots, was asked for; None if it is no such one."""
        found = self.value(
            "SELECT substring(request_key FROM '^doubted:([0-9]+)$')::bigint FROM comparison WHERE id = :c",
            c=comparison,
        )
        return None if found is None else int(found)

    def is_open(self, comparison: int) -> bool:
        return (
            self.value(
                "SELECT status IN ('waiting', 'running') FROM comparison WHERE id = :c",
                c=comparison,
            )
            is True
        )

    def comparison_reason(self, comparison: int) -> str | None:
        found = self.value("SELECT reason FROM comparison WHERE id = :c", c=comparison)
        return None if found is None else str(found)

    def boot_seconds(self, testbox: str, spec: str) -> float | None:
        """Mean of the last 20 boots of this spec on the testbox, else of any; None before the first."""
        found = self.value(
            "SELECT coalesce((SELECT avg(seconds) FROM (SELECT seconds FROM boot WHERE testbox = :box AND spec = :spec ORDER BY id DESC LIMIT 20) AS own),"
            " (SELECT avg(seconds) FROM (SELECT seconds FROM boot WHERE testbox = :box ORDER BY id DESC LIMIT 20) AS latest))",
            box=testbox,
            spec=spec,
        )
        return None if found is None else float(found)

    def stored_builds(self, build_keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Builds as `compare_kernels` takes them: build_key, status, image_sha256, files."""
        rows = self.all(
            "SELECT build_key, status, image_sha256, files FROM kernel_build WHERE build_key = ANY(:keys)",
            keys=list(build_keys),
        )
        return {row.build_key: dict(row._mapping) for row in rows}
