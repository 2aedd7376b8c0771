"""Gates of proof of an incident."""

from __future__ import annotations

from typing import Protocol

from swingbot.core.model.records import (
    Proven,
)
from swingbot.core.proof.gates import GateRow


class Gates(Protocol):
    """Gates of proof of an incident."""

    def open_incidents(self) -> list[int]: ...

    def incident(self, incident: int) -> Proven | None:
        """None where there is no such incident, or it was never measured against its parent."""

    def of_incident(self, incident: int) -> list[GateRow]: ...

    def put(self, incident: int, gate: GateRow) -> None:
        """Record what is known of a gate now; the time at which it was asked for begins anew with each try."""
