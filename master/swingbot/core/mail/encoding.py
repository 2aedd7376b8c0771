"""Encode mails, with Message-IDs that never change."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from email import message_from_string
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import EmailPolicy, default
from email.utils import format_datetime, getaddresses

from swingbot.core.mail.addresses import BadAddress, checked
from swingbot.core.mail.message import Mail, is_message_id
from swingbot.core.text.plain import clean, cut

_ID_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_DOMAIN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")
_LONGEST_SUBJECT = 200
MAIL_BYTES = 10_000


def message_id(report_id: str, kind: str, revision: int, domain: str) -> str:
    """The Message-ID of a report, derived and so the same after every crash:
    `<r4.first.1@swingbot.example>`.
    """
    for part in (report_id, kind):
        if not _ID_PART.fullmatch(part):
            raise BadAddress(
                f"{part!r} cannot be part of a Message-ID; use letters, digits, _ and -"
            )
    if revision < 1:
        raise BadAddress(f"revision {revision}: revisions count from 1")
    if not _DOMAIN.fullmatch(domain):
        raise BadAddress(f"mail.domain: {domain!r} is not a domain name")
    return f"<{report_id}.{kind}.{revision}@{domain}>"


def _header(text: str, limit: int) -> str:
    """A stranger's text for a header. "=?" would begin an encoded word, in which line breaks can
    hide: it is taken apart.
    """
    return cut(text, limit).replace("=?", "= ?")


def _address(text: str) -> Address:
    """One `Name <name@example.org>` as a header value; the name is a stranger's text and is
    cleaned.
    """
    pairs = getaddresses([clean(text)])
    if len(pairs) != 1 or not pairs[0][1]:
        raise BadAddress(f"{text!r} is not one mail address")
    name, address = pairs[0]
    return Address(display_name=_header(name, 80), addr_spec=checked(address))


def _unfolded(folded: str) -> str:
    return str(message_from_string(f"{folded}\r\n", policy=default)["Subject"])


class _Policy(EmailPolicy):
    """Message-IDs and ASCII subjects are folded at spaces alone: email would take a long word of
    them apart into encoded words.

    Where email loses a space between two encoded words, the whole subject is one run of them.
    """

    def fold(self, name: str, value: str) -> str:
        if name in _IDS:
            return f"{name}: {f'{self.linesep} '.join(value.split())}{self.linesep}"
        if name == "Subject" and value.isascii():
            lines = textwrap.wrap(
                value,
                width=77,
                initial_indent=f"{name}: ",
                subsequent_indent=" ",
                break_long_words=False,
                break_on_hyphens=False,
            )
            return f"{self.linesep.join(lines or [f'{name}: '])}{self.linesep}"
        folded = str(super().fold(name, value))
        if name == "Subject" and _unfolded(folded) != str(value):
            words = Header(str(value), charset="utf-8", header_name=name)
            return f"{name}: {words.encode(linesep=self.linesep)}{self.linesep}"
        return folded

    def fold_binary(self, name: str, value: str) -> bytes:
        return (
            self.fold(name, value).encode("ascii")
            if name in (*_IDS, "Subject")
            else bytes(super().fold_binary(name, value))
        )


_IDS = ("Message-ID", "In-Reply-To", "References")
_POLICY = _Policy(linesep="\r\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Headers of a mail except its subject and thread.

    `report` is the id in X-Swingbot-Report, `list_id` a domain-like name for List-Id
    (`reports.swingbot.example.org`); empty leaves them out.
    """

    sender: str
    to: Sequence[str]
    cc: Sequence[str]
    message_id: str
    date: datetime
    report: str = ""
    list_id: str = ""
    reply_to: str = ""


def encode(mail: Mail, envelope: Envelope) -> bytes:
    """The mail byte for byte, with CRLF line ends: one part, plain text, UTF-8, no line folded or
    quoted.

    ASCII is sent as 7bit, all else as 8bit: quoted-printable would break the tables for readers of
    the raw text. Display names are left out where they would make the mail larger than 10 KB.
    Raises BadAddress; whatever the subject and the body hold, they add no header.
    """
    if not is_message_id(envelope.message_id):
        raise BadAddress(
            f"{envelope.message_id!r} is not a Message-ID; one looks like <r4.first.1@example.org>"
        )
    if not envelope.to:
        raise BadAddress("a report needs at least one recipient; set mail.to")
    message = EmailMessage(policy=_POLICY)
    message["From"] = _address(envelope.sender)
    message["To"] = [_address(text) for text in envelope.to]
    if envelope.cc:
        message["Cc"] = [_address(text) for text in envelope.cc]
    if envelope.reply_to:
        message["Reply-To"] = _address(envelope.reply_to)
    message["Subject"] = _header(mail.subject, _LONGEST_SUBJECT)
    message["Date"] = format_datetime(envelope.date)
    message["Message-ID"] = envelope.message_id
    if is_message_id(mail.in_reply_to):
        message["In-Reply-To"] = mail.in_reply_to
        message["References"] = " ".join(
            id_ for id_ in mail.references or (mail.in_reply_to,) if is_message_id(id_)
        )
    _robot(message, envelope.report, envelope.list_id)
    body = (
        "".join(
            f"{''.join(c for c in line if clean(c) or c == ' ')}\n"
            for line in mail.body.split("\n")
        ).rstrip("\n")
        + "\n"
    )
    message.set_content(body, charset="utf-8", cte="7bit" if body.isascii() else "8bit")
    data = message.as_bytes()
    bare_to, bare_cc = (
        [_address(text).addr_spec for text in texts] for texts in (envelope.to, envelope.cc)
    )
    if len(data) <= MAIL_BYTES or (list(envelope.to), list(envelope.cc)) == (bare_to, bare_cc):
        return data
    return encode(mail, replace(envelope, to=bare_to, cc=bare_cc))


def _robot(message: EmailMessage, report: str, list_id: str) -> None:
    """Headers that mark automatic mail (RFC 3834, RFC 2919) and name the report for our archive."""
    message["Auto-Submitted"] = "auto-generated"
    message["Precedence"] = "bulk"
    if list_id:
        if not _DOMAIN.fullmatch(list_id):
            raise BadAddress(
                f"mail.list_id: {list_id!r} is not a name such as reports.swingbot.example.org"
            )
        message["List-Id"] = f"<{list_id}>"
    if report:
        if not _ID_PART.fullmatch(report):
            raise BadAddress(f"{report!r} is not the id of a report")
        message["X-Swingbot-Report"] = report
