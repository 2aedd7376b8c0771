"""Gates of proof in memory."""

from __future__ import annotations

from dataclasses import replace

from swingbot.core.model.records import Proven
from swingbot.core.proof.gates import GateRow
from tests.fakes.store.tables import GateOf, Noun


class Gates(Noun):
    def open_incidents(self) -> list[int]:
        return sorted(
            {number for (number, _), row in self.db.gates.items() if row.gate.status == "running"}
        )

    def incident(self, incident: int) -> Proven | None:
        known = self.db.incidents.get(incident)
        if known is None or known.comparison is None:
            return None
        comparison = self.db.comparisons[known.comparison].comparison
        return Proven(id=known.id, tree=known.tree, comparison=comparison)

    def of_incident(self, incident: int) -> list[GateRow]:
        now = self.db.now()
        return [
            replace(row.gate, age_seconds=(now - row.asked_at).total_seconds())
            for (number, _), row in sorted(self.db.gates.items(), key=lambda item: item[0])
            if number == incident
        ]

    def put(self, incident: int, gate: GateRow) -> None:
        known = self.db.gates.get((incident, gate.gate))
        again = known is None or known.gate.tries != gate.tries
        asked = self.db.now() if known is None or again else known.asked_at
        self.db.gates[incident, gate.gate] = GateOf(gate=gate, asked_at=asked)
