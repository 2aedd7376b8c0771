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
        """Return the incidents with a running gate, by number."""

    def incident(self, incident: int) -> Proven | None:
        """Return an incident with its comparison of culprit and parent; None if it does not exist
        or was never measured against its parent.
        """

    def of_incident(self, incident: int) -> list[GateRow]:
        """Return the gates of an incident by name, with seconds since each was requested."""

    def put(self, incident: int, gate: GateRow) -> None:
        """Store a gate; it replaces the earlier one. The time of request restarts with each try."""
