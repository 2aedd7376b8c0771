"""Store a mail that was just written, byte for byte as it will be sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from swingbot.core.mail.encoding import Envelope, encode
from swingbot.core.mail.message import Mail
from swingbot.core.model import ids
from swingbot.core.model.statuses import ReportKind
from swingbot.core.moderation.filing import Filing
from swingbot.service.ports import LabSettings
from swingbot.service.ports.reports import NewReport, Reports

_TO_ONE: Final[tuple[ReportKind, ...]] = ("alert", "result")  # no mail of a list


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenMail:
    """A written report and its recipients (`filing`).

    `number` was reserved because the mail contains it.
    """

    number: int
    kind: ReportKind
    revision: int
    message_id: str
    mail: Mail
    filing: Filing
    incident: int | None = None
    week: date | None = None  # digest only: Monday of its week
    alert: int | None = None  # mail about the lab itself: number of its alert
    result: int | None = None  # mail to a requester: number of the result
    # facts that the text was written from (`ReportFacts.to_json`)
    facts: Mapping[str, Any] | None = None


def store_mail(
    settings: LabSettings, now: Callable[[], datetime], reports: Reports, written: WrittenMail
) -> None:
    """Add the report and its message; a report that is already stored stays as it is."""
    to, cc = written.filing.addressed.to, written.filing.addressed.cc
    message = encode(
        written.mail,
        Envelope(
            sender=settings.sender,
            to=to,
            cc=cc,
            message_id=written.message_id,
            date=now(),
            report=ids.show("report", written.number),
            list_id="" if written.kind in _TO_ONE else settings.mail.list_id,
        ),
    )
    reports.add(
        NewReport(
            number=written.number,
            incident=written.incident,
            kind=written.kind,
            revision=written.revision,
            message_id=written.message_id,
            to=to,
            cc=cc,
            subject=written.mail.subject,
            body=written.mail.body,
            message=message,
            state=written.filing.state,
            filing=written.filing,
            week=written.week,
            alert=written.alert,
            result=written.result,
            facts=written.facts,
        )
    )
