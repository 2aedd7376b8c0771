"""What people decide about reports: release, hold or drop one, stop and resume all mail."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.statuses import ReportAct, ReportState
from swingbot.core.moderation.moves import MOVES
from swingbot.service.ports import RequestError
from swingbot.service.ports.outbox import Outbox


def decide(
    outbox: Outbox, report: int, act: ReportAct, now: datetime, *, who: str, why: str = ""
) -> ReportState:
    """Apply and record a decision; return the report's state. Raises NotFound, RequestError."""
    mail, move = outbox.lock(report), MOVES[act]
    if mail is None:
        raise NotFound(missing("report", report))
    was = mail.state
    if was in move.done:
        return was
    if was not in move.start:
        name = ids.show("report", report)
        raise RequestError(f"cannot {act} {name}, which is {was}: {move.hint[was]}")
    mail = replace(mail, state=move.goal)
    if act == "hold":
        mail = replace(mail, reason=why or mail.reason)
    if act == "release":  # due at once
        mail = replace(mail, next_try=now, error=None)
    outbox.update(mail)
    counts = mail.tries == 0 and was != "unknown"
    outbox.note(act, who=who, why=why, report=report, was=was, counts=counts)
    return move.goal


def switch_mail(outbox: Outbox, stopped: bool, *, who: str, why: str) -> bool:
    """Stop or resume all mail; return whether that changed anything."""
    changed = outbox.set_stopped(stopped, who, why)
    if changed:
        outbox.note("stop" if stopped else "resume", who=who, why=why)
    return changed
