"""Compute recipients again for a mail that is already written: its text stays; To, Cc and the
envelope change.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes, policy
from email.utils import parsedate_to_datetime

from swingbot.core.mail.encoding import Envelope, encode
from swingbot.core.mail.message import Mail
from swingbot.core.moderation.filing import Addressed
from swingbot.service.ports import Lab
from swingbot.service.report.address import recipients_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressedMail:
    """A stored mail and the commit that it is about."""

    report: str
    tree: str
    commit: str
    author: str
    base: str  # whose MAINTAINERS counts
    message_id: str
    subject: str
    body: str
    message: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Readdressed:
    addressed: Addressed
    message: bytes


def readdress(lab: Lab, case: AddressedMail) -> Readdressed:
    """Return the same mail addressed according to the current settings; Message-ID, thread and date
    stay.
    """
    addressed = recipients_of(
        lab.tools, lab.settings, case.tree, case.commit, case.author, case.base
    )
    old = message_from_bytes(case.message, policy=policy.compat32)
    references = tuple(str(old.get("References", "")).split())
    mail = Mail(
        subject=case.subject,
        body=case.body,
        in_reply_to=str(old.get("In-Reply-To", "")).strip(),
        references=references,
    )
    written = _date(old.get("Date")) or lab.clock.now()
    settings = lab.settings
    message = encode(
        mail,
        Envelope(
            sender=settings.sender,
            to=addressed.to,
            cc=addressed.cc,
            message_id=case.message_id,
            date=written,
            report=case.report,
            list_id=settings.mail.list_id,
        ),
    )
    return Readdressed(addressed=addressed, message=message)


def _date(header: object) -> datetime | None:
    try:
        return parsedate_to_datetime(str(header))
    except ValueError:
        return None
