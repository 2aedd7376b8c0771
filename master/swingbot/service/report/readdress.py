"""Compute recipients again for a mail that is already written: its text stays; To, Cc and the
envelope change.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from email import message_from_bytes, policy
from email.utils import parsedate_to_datetime

from swingbot.core.mail.encoding import Envelope, encode
from swingbot.core.mail.message import Mail
from swingbot.core.model import ids
from swingbot.core.model.lookup import NotFound, missing
from swingbot.core.model.statuses import ReportState
from swingbot.core.moderation.filing import Addressed
from swingbot.service.ports import Clock, Lab, LabSettings, RequestError, Tools
from swingbot.service.ports.outbox import AddressedMail
from swingbot.service.report.address import (
    readers,
    recipients_of,
    restricted_on,
    testboxes_of_mail,
    within,
)


def readdress(lab: Lab, report: int, who: str) -> ReportState:
    """Address a held or drafted mail according to the current settings; Message-ID, thread and date
    stay. Return the report's state. Raises NotFound, RequestError.
    """
    name = ids.show("report", report)
    with lab.transaction("readdress") as tx:
        if tx.outbox.lock(report) is None:
            raise NotFound(missing("report", report))
        mail = tx.outbox.written(report)
        if mail is None:
            raise RequestError(
                f"{name} is not about a commit; digests are sent to mail.digest_to, mails about the"
                " lab to mail.to"
            )
        if mail.state not in ("draft", "held"):
            raise RequestError(
                f"cannot readdress {name}, which is {mail.state}: hold it first if it has not been"
                " sent"
            )
        thread = None
        if mail.kind != "first":
            first = tx.reports.first_mail(mail.incident)
            thread = readers(first) if first is not None else ()
        testboxes = testboxes_of_mail(tx.sightings, tx.bisections, report, mail)
        restricted = restricted_on(
            lab.catalogue.testboxes, lab.settings.mail, tx.anchors, testboxes
        )
        addressed, message = readdressed(
            lab.tools, lab.settings, lab.clock, name, mail, restricted, thread
        )
        tx.outbox.readdress(report, addressed, message)
        tx.outbox.note("readdress", who=who, why="", report=report, was=mail.state)
        return mail.state


def readdressed(
    tools: Tools,
    settings: LabSettings,
    clock: Clock,
    name: str,
    stored: AddressedMail,
    restricted: str = "",
    thread: Sequence[str] | None = None,
) -> tuple[Addressed, bytes]:
    """Return the recipients of a stored mail by the current settings, and the message to them.

    `thread`: who got the first mail, if it is a later one.
    """
    addressed = recipients_of(
        tools, settings, stored.tree, stored.commit, stored.author, stored.base, restricted
    )
    if thread is not None:
        addressed = within(addressed, thread, settings.recipients)
    old = message_from_bytes(stored.message, policy=policy.compat32)
    mail = Mail(
        subject=stored.subject,
        body=stored.body,
        in_reply_to=str(old.get("In-Reply-To", "")).strip(),
        references=tuple(str(old.get("References", "")).split()),
    )
    envelope = Envelope(
        sender=settings.sender,
        to=addressed.to,
        cc=addressed.cc,
        message_id=stored.message_id,
        date=_date(old.get("Date")) or clock.now(),
        report=name,
        list_id=settings.mail.list_id,
    )
    return addressed, encode(mail, envelope)


def _date(header: object) -> datetime | None:
    try:
        return parsedate_to_datetime(str(header))
    except ValueError:
        return None
