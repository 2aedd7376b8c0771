"""Gates of proof of an incident."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Proven,
)
from swingbot.core.proof.gates import GateRow


class Gates(Protocol):
    """Gates of proof of an incident."""

    def open_incidents(self) -> list[int]:
        """Incidents with a gate that is running, by number."""

    def incident(self, incident: int) -> Proven | None:
        """An incident with the comparison of culprit and parent; None where there is no such incident, or it was never measured against its parent."""

    def of_incident(self, incident: int) -> list[GateRow]:
        """Gates of an incident by name, with seconds since each was asked for."""

    def put(self, incident: int, gate: GateRow) -> None:
        """Store what is known of a gate; it replaces what was. The time at which it was asked for starts again with each try."""
