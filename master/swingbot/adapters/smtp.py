"""Hand a mail to an SMTP server, and know afterwards whether it was taken, refused, or neither is known."""

from __future__ import annotations

import re
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from email.policy import SMTP as SMTP_POLICY

from swingbot.service.checkpoint import checkpoint
from swingbot.service.report.send import MailDelayed, MailRefused, MailUncertain


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpMailer:
    """Sends by `host`:`port`, encrypted where the server offers STARTTLS. `timeout` in seconds holds for each answer of the server.

    `hidden` are addresses that get a copy of every mail and stand in no header.
    """

    host: str
    port: int
    timeout: float = 30.0
    hidden: tuple[str, ...] = ()

    def send(
        self, message: bytes, recipients: Sequence[str], *, patient: bool = False
    ) -> Mapping[str, str]:
        """Hand `message` over for `recipients`; the answer names those that were refused while others were taken.

        `patient`: the server takes nothing while it puts a recipient off (4xx), so that nobody is left out. Raises MailDelayed (try later),
        MailRefused (a person must look) or MailUncertain (it may have left).
        """
        try:
            smtp = smtplib.SMTP(self.host, self.port, timeout=self.timeout)
        except (OSError, smtplib.SMTPException) as error:
            raise MailDelayed(
                f"mail server {self._where} cannot be reached: {_reason(error)}", unreachable=True
            ) from None
        try:
            checkpoint("smtp: connected")
            return self._converse(smtp, message, recipients, patient)
        finally:
            smtp.close()

    @property
    def _where(self) -> str:
        return f"{self.host}:{self.port}"

    def _converse(
        self, smtp: smtplib.SMTP, message: bytes, recipients: Sequence[str], patient: bool
    ) -> Mapping[str, str]:
        try:
            refused = self._envelope(smtp, message, recipients, patient)
        except (OSError, smtplib.SMTPException) as error:
            raise MailDelayed(
                f"mail server {self._where} broke off before it got the mail: {_reason(error)}",
                unreachable=True,
            ) from None
        checkpoint("smtp: before the mail")
        try:
            smtp.send(_as_data(message))
            checkpoint("smtp: before the answer")
            code, answer = smtp.getreply()
        except (OSError, smtplib.SMTPException) as error:
            raise MailUncertain(
                f"mail server {self._where} got the mail and broke off before its answer: {_reason(error)}"
            ) from None
        self._demand(code, answer, "the mail")
        with suppress(OSError, smtplib.SMTPException):
            smtp.quit()  # it has said that it took the mail; how it says goodbye changes nothing
        return refused

    def _envelope(
        self, smtp: smtplib.SMTP, message: bytes, recipients: Sequence[str], patient: bool
    ) -> Mapping[str, str]:
        """All that comes before the mail itself; ends with the server waiting for data."""
        smtp.ehlo_or_helo_if_needed()
        if smtp.has_extn("starttls"):
            smtp.starttls(context=_encrypted())
            smtp.ehlo_or_helo_if_needed()
        options = [f"size={len(message)}"] if smtp.has_extn("size") else []
        if not message.isascii():
            if not smtp.has_extn("8bitmime"):
                raise MailRefused(
                    f"mail server {self._where} takes no 8-bit mail (no 8BITMIME), and this one has names that are not ASCII"
                )
            options.append("body=8bitmime")
        self._demand(*smtp.mail(_sender(message), options), "the sender")
        answers = {
            recipient: smtp.rcpt(recipient)
            for recipient in dict.fromkeys((*recipients, *self.hidden))
        }
        refused = {
            recipient: (code, _said(code, answer))
            for recipient, (code, answer) in answers.items()
            if code not in (250, 251)
        }
        visible = [
            (code, f"{recipient}: {why}")
            for recipient, (code, why) in refused.items()
            if recipient in recipients
        ]
        put_off = [why for code, why in visible if 400 <= code < 500]
        if len(visible) == len(set(recipients)):
            text = f"mail server {self._where} takes no recipient: " + "; ".join(
                why for _, why in visible
            )
            raise MailDelayed(text) if put_off else MailRefused(text)
        if put_off and patient:
            raise MailDelayed(f"mail server {self._where} puts off {'; '.join(put_off)}")
        code, answer = smtp.docmd("data")
        if code != 354:
            self._demand(code, answer, "the mail")
            raise MailDelayed(
                f"mail server {self._where} gave no go-ahead for the mail: {_said(code, answer)}"
            )
        return {recipient: why for recipient, (_, why) in refused.items()}

    def _demand(self, code: int, answer: bytes, what: str) -> None:
        """Raise unless the server said yes: 5xx is for ever, everything else may pass."""
        if 200 <= code < 300:
            return
        text = f"mail server {self._where} refuses {what}: {_said(code, answer)}"
        raise MailRefused(text) if 500 <= code < 600 else MailDelayed(text)


def _encrypted() -> ssl.SSLContext:
    """Encryption without a check of the certificate: mail servers of a lab sign their own, and the other choice here is plain text."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _sender(message: bytes) -> str:
    header = BytesHeaderParser(policy=SMTP_POLICY).parsebytes(message)["From"]
    found = list(getattr(header, "addresses", ()))
    if len(found) != 1:
        raise MailRefused("the mail has no single sender; set mail.sender to one address")
    return str(found[0].addr_spec)


def _as_data(message: bytes) -> bytes:
    """The mail as SMTP wants it: CRLF line ends, a leading dot doubled, ended by a lone dot."""
    lines = re.sub(rb"\r\n|\r|\n", b"\r\n", message)
    if not lines.endswith(b"\r\n"):
        lines += b"\r\n"
    return re.sub(rb"(?m)^\.", b"..", lines) + b".\r\n"


def _said(code: int, answer: bytes) -> str:
    text = " ".join(answer.decode("ascii", "replace").split())[:200]
    return f"{code} {text}".strip()


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        answer = error.smtp_error
        return _said(
            error.smtp_code,
            answer if isinstance(answer, bytes) else str(answer).encode("ascii", "replace"),
        )
    return str(error) or type(error).__name__
