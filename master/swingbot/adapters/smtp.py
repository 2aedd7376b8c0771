"""Hand a mail to an SMTP server, and report whether it was accepted, refused, or neither is
known.
"""

from __future__ import annotations

import re
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.parser import BytesHeaderParser
from email.policy import SMTP as SMTP_POLICY
from pathlib import Path
from typing import Final

from swingbot.adapters import local_mail, progress
from swingbot.service.checkpoint import checkpoint
from swingbot.service.report.send import MailDelayed, MailRefused, MailUncertain

_ANSWERS: Final = 10  # of the server to one mail, without those to recipients


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpMailer:
    """Sends through `host`:`port`, encrypted if the server offers STARTTLS. `timeout` in seconds
    limits each response of the server.

    `hidden` has addresses that get a copy of every mail and appear in no header. `key` is the file
    of the key that the embedded server requires.
    """

    host: str
    port: int
    timeout: float = 30.0
    key: Path | None = None
    hidden: tuple[str, ...] = ()

    def send(
        self, message: bytes, recipients: Sequence[str], *, patient: bool = False
    ) -> Mapping[str, str]:
        """Hand `message` over for `recipients`; return those that were refused although others were
        accepted.

        `patient`: hand nothing over while the server defers a recipient (4xx), so that none is left
        out. Raises MailDelayed (try later), MailRefused (a person must act) or MailUncertain (it
        may have been sent).
        """
        answers = _ANSWERS + len(recipients) + len(self.hidden)
        with progress.waiting(self.timeout * answers):
            return self._send(message, recipients, patient)

    def _send(self, message: bytes, recipients: Sequence[str], patient: bool) -> Mapping[str, str]:
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
                f"mail server {self._where} closed the connection before it got the mail: "
                f"{_reason(error)}",
                unreachable=True,
            ) from None
        checkpoint("smtp: before the mail")
        try:
            smtp.send(_as_data(message))
            checkpoint("smtp: before the answer")
            code, answer = smtp.getreply()
        except (OSError, smtplib.SMTPException) as error:
            raise MailUncertain(
                f"mail server {self._where} got the mail and closed the connection before its "
                f"response: {_reason(error)}"
            ) from None
        self._demand(code, answer, "the mail")
        with suppress(OSError, smtplib.SMTPException):
            smtp.quit()  # the mail is already accepted; an error while quitting does not matter
        return refused

    def _envelope(
        self, smtp: smtplib.SMTP, message: bytes, recipients: Sequence[str], patient: bool
    ) -> Mapping[str, str]:
        """Send the commands before the mail itself, up to the server's go-ahead for data."""
        smtp.ehlo_or_helo_if_needed()
        if smtp.has_extn("starttls"):
            smtp.starttls(context=_encrypted())
            smtp.ehlo_or_helo_if_needed()
        self._authenticate(smtp)
        options = [f"size={len(message)}"] if smtp.has_extn("size") else []
        if not message.isascii():
            if not smtp.has_extn("8bitmime"):
                raise MailRefused(
                    f"mail server {self._where} does not accept 8-bit mail (no 8BITMIME), and "
                    "this mail has non-ASCII names"
                )
            options.append("body=8bitmime")
        self._demand(*smtp.mail(_sender(message), options), "the sender")
        answers = {
            recipient: smtp.rcpt(recipient)
            for recipient in dict.fromkeys((*recipients, *self.hidden))
        }
        refused = {
            recipient: (code, _reply(code, answer))
            for recipient, (code, answer) in answers.items()
            if code not in (250, 251)
        }
        visible = [
            (code, f"{recipient}: {why}")
            for recipient, (code, why) in refused.items()
            if recipient in recipients
        ]
        deferred = [why for code, why in visible if 400 <= code < 500]
        if len(visible) == len(set(recipients)):
            text = f"mail server {self._where} accepts no recipient: " + "; ".join(
                why for _, why in visible
            )
            raise MailDelayed(text) if deferred else MailRefused(text)
        if deferred and patient:
            raise MailDelayed(f"mail server {self._where} defers {'; '.join(deferred)}")
        code, answer = smtp.docmd("data")
        if code != 354:
            self._demand(code, answer, "the mail")
            raise MailDelayed(
                f"mail server {self._where} did not accept the DATA command: {_reply(code, answer)}"
            )
        return {recipient: why for recipient, (_, why) in refused.items()}

    def _authenticate(self, smtp: smtplib.SMTP) -> None:
        """Prove to the embedded server that this is swingbot; does nothing at other servers."""
        if local_mail.MECHANISM not in smtp.esmtp_features.get("auth", "").split():
            return
        if self.key is None:
            raise MailDelayed(f"mail server {self._where} requires the key of mail.key_file")
        try:
            key = local_mail.read_key(self.key)
        except (OSError, ValueError) as error:
            raise MailDelayed(f"cannot read the key of the mail server: {error}") from None

        def answer(asked: bytes | None = None) -> str:
            return local_mail.proof(key, asked or b"")

        try:
            smtp.auth(local_mail.MECHANISM, answer, initial_response_ok=False)
        except smtplib.SMTPAuthenticationError as error:
            raise MailDelayed(
                f"mail server {self._where} has another key than {self.key}: {_reason(error)}"
            ) from None

    def _demand(self, code: int, answer: bytes, what: str) -> None:
        """Raise an error unless the server accepted: 5xx is permanent, everything else is
        temporary.
        """
        if 200 <= code < 300:
            return
        text = f"mail server {self._where} refuses {what}: {_reply(code, answer)}"
        raise MailRefused(text) if 500 <= code < 600 else MailDelayed(text)


def _encrypted() -> ssl.SSLContext:
    """Return a TLS context that does not verify certificates: mail servers of a lab often sign
    their own, and the alternative is plain text.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _sender(message: bytes) -> str:
    header = BytesHeaderParser(policy=SMTP_POLICY).parsebytes(message)["From"]
    senders = list(getattr(header, "addresses", ()))
    if len(senders) != 1:
        raise MailRefused("the mail must have exactly one sender; set mail.sender to one address")
    return str(senders[0].addr_spec)


def _as_data(message: bytes) -> bytes:
    """Return the mail in SMTP format: CRLF line ends, leading dots doubled, terminated by a single
    dot.
    """
    lines = re.sub(rb"\r\n|\r|\n", b"\r\n", message)
    if not lines.endswith(b"\r\n"):
        lines += b"\r\n"
    return re.sub(rb"(?m)^\.", b"..", lines) + b".\r\n"


def _reply(code: int, answer: bytes) -> str:
    text = " ".join(answer.decode("ascii", "replace").split())[:200]
    return f"{code} {text}".strip()


def _reason(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        answer = error.smtp_error
        return _reply(
            error.smtp_code,
            answer if isinstance(answer, bytes) else str(answer).encode("ascii", "replace"),
        )
    return str(error) or type(error).__name__
