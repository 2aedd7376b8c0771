"""Decisions about incidents of a service elsewhere, by the holder of a moderator's token."""

from __future__ import annotations

from swingbot.app.remote.connection import Connection
from swingbot.app.remote.login import Login
from swingbot.core.incident.decide import IncidentDecision
from swingbot.core.model.answer_documents import DecidedIncident
from swingbot_jobs import codec


def decide(login: Login, id_: str, decision: IncidentDecision) -> str:
    """Apply a decision; return the incident to look at. Raises RequestError, ServiceError."""
    answer = Connection(login).post(
        DecidedIncident, f"/incident/{id_}/decide", codec.plain(decision)
    )
    return str(answer["id"])
