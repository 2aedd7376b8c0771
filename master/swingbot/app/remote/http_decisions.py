"""Decisions about incidents and reports of a service elsewhere, with a moderator's token."""

from __future__ import annotations

from collections.abc import Sequence

from swingbot.app.documents import Facts
from swingbot.app.remote.connection import Connection
from swingbot.app.remote.login import Login
from swingbot.core.incident.decide import IncidentDecision
from swingbot.core.model.answer_documents import (
    AskedGates,
    CostOfAGate,
    DecidedIncident,
    DecidedReport,
    SwitchedMail,
)
from swingbot.core.moderation.decision import ReportDecision, SwitchDecision
from swingbot.core.proof.proof_request import ProofRequest
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


def run_gates(login: Login, id_: str, gates: Sequence[str]) -> bool:
    """Run gates of an incident again; return whether it is measured against its parent first.

    Raises RequestError, NotFound, ServiceError.
    """
    asked = ProofRequest(gates=tuple(gates))
    answer = Connection(login).post(AskedGates, f"/incident/{id_}/prove", codec.plain(asked))
    return answer["measures_parent_first"]


def costs_of_gates(login: Login, id_: str, gates: Sequence[str]) -> list[CostOfAGate]:
    """Return the cost of each gate if it is run now.

    Raises RequestError, NotFound, ServiceError.
    """
    asked = ProofRequest(gates=tuple(gates), dry_run=True)
    answer = Connection(login).post(AskedGates, f"/incident/{id_}/prove", codec.plain(asked))
    return answer["costs"]


def readdress_report(login: Login, id_: str) -> None:
    """Compute the recipients of a report again. Raises RequestError, NotFound, ServiceError."""
    Connection(login).post(DecidedReport, f"/report/{id_}/readdress", {})


def switch_mail(login: Login, decision: SwitchDecision) -> tuple[Facts, bool]:
    """Stop or resume all mail; return the switch, and whether a setting stops mail, too.

    Raises RequestError, ServiceError.
    """
    answer = Connection(login).post(SwitchedMail, "/outbox/switch", codec.plain(decision))
    return dict(answer["switch"]), answer["stopped_by_setting"]
