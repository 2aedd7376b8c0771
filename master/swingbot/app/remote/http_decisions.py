"""Decisions about incidents and reports of a service elsewhere, with a moderator's token."""

from __future__ import annotations

from swingbot.app.documents import Facts
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.login import Login
from swingbot.core.incident.decide import IncidentDecision
from swingbot.core.model.answer_documents import DecidedIncident, DecidedReport, SwitchedMail
from swingbot.core.moderation.decision import ReportDecision, SwitchDecision
from swingbot_jobs import codec


def decide(login: Login, id_: str, decision: IncidentDecision) -> str:
    """Apply a decision; return the incident to look at. Raises RequestError, ServiceError."""
    answer = Connection(login).post(
        DecidedIncident, f"/incident/{id_}/decide", codec.plain(decision)
    )
    return str(answer["id"])


def decide_report(login: Login, id_: str, decision: ReportDecision) -> str:
    """Apply a decision; return the state of the report. Raises RequestError, ServiceError."""
    path = f"/report/{id_}/decide"
    return str(Connection(login).post(DecidedReport, path, codec.plain(decision))["state"])


def readdress_report(login: Login, id_: str) -> None:
    """Compute the recipients of a report again. Raises RequestError, NotFound, ServiceError."""
    Connection(login).post(DecidedReport, f"/report/{id_}/readdress", {})


def switch_mail(login: Login, decision: SwitchDecision) -> tuple[Facts, bool]:
    """Stop or resume all mail; return the switch, and whether a setting stops mail, too.

    Raises RequestError, ServiceError.
    """
    answer = Connection(login).post(SwitchedMail, "/outbox/switch", codec.plain(decision))
    return dict(answer["switch"]), answer["stopped_by_setting"]
