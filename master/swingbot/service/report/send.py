"""Send the reports that are due, each at most once, even if a process dies in between.

A report is `queued`; it becomes `sending` (committed), is handed to the mail server, and becomes
`sent` (committed). SMTP cannot guarantee exactly-once delivery, so a report in `sending` after a
crash may or may not have left. The archive shows it: the Maildir that the embedded server delivers
to, or swingbot's own copies of mail that an external server accepted. A mail in the archive was
sent. A mail that is missing was not sent if mail is delivered into the archive itself. With an
external server it is `unknown`, and a person decides (`swingbot report release` sends it again).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Protocol

from swingbot.core.moderation.send_check import SendRules, WhyNot, why_not
from swingbot.service.checkpoint import checkpoint

# How long a server may still process a mail whose sender died. With a shorter time, a mail could be
# looked up before it is delivered, be missed, and be sent twice.
SETTLE = timedelta(seconds=10)
# the same for a server that exceeded our own time-out: longer than that time-out
SETTLE_SLOW = timedelta(seconds=60)
FIRST_RETRY, LAST_RETRY = timedelta(seconds=30), timedelta(hours=1)
# number of tries (three hours) for which a mail waits for a recipient with a temporary error; then
# it goes to the others
PATIENT_TRIES = 10
# how often the archive is searched for a mail in state `unknown`
LOOK_AGAIN = timedelta(minutes=1)


class MailDelayed(Exception):
    """The server did not accept the mail, and a later try may work.

    `unreachable`: the server did not respond at all.
    """

    def __init__(self, reason: str, *, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


class MailRefused(Exception):
    """The server did not accept the mail and never will in this form; a person must act."""


class MailUncertain(Exception):
    """The mail was handed over but the server did not reply: it may or may not have been sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A mail that may be sent.

    `tries` counts hand-overs so far; `next_try` is the time of the next try, or when a hand-over
    has settled.
    """

    report: int
    message_id: str
    message: bytes
    recipients: tuple[str, ...]
    tries: int
    next_try: datetime


class Outbox(Protocol):
    """The queue of reports. Each method is one committed transaction."""

    def turn(self) -> AbstractContextManager[bool]:
        """Yield True to one sender at a time; the turn of a sender that died is over."""

    def sending(self) -> list[Outgoing]:
        """Return the mails whose sending was started but not completed."""

    def in_doubt(self, now: datetime) -> list[Outgoing]:
        """Return the `unknown` mails that are due for another look into the archive."""

    def due(self, now: datetime) -> list[Outgoing]:
        """Return the queued mails that are due, oldest first."""

    def take(self, report: int, now: datetime, settled: datetime, why_not: WhyNot) -> bool:
        """queued -> sending, one more try, not to be looked up before `settled`.

        Returns False if it must not be sent: mail is stopped, a person held or dropped it, or
        `why_not` has a reason, with which it is held.
        """

    def sent(self, report: int, at: datetime, note: str | None) -> None:
        """sending -> sent."""

    def wait(self, report: int, settled: datetime, error: str) -> None:
        """Keep it in `sending`; not to be looked up before `settled`."""

    def back(self, report: int, next_try: datetime, error: str) -> None:
        """sending -> queued."""

    def held(self, report: int, error: str) -> None:
        """sending -> held."""

    def unknown(self, report: int, error: str, look_again: datetime) -> None:
        """sending -> unknown."""

    def found(self, report: int, at: datetime) -> None:
        """unknown -> sent: a copy was found.

        Changes nothing if a person has decided in the meantime.
        """

    def not_found(self, report: int, look_again: datetime) -> None:
        """Keep it in `unknown`."""


class Mailer(Protocol):
    def send(
        self, message: bytes, recipients: Sequence[str], *, patient: bool = False
    ) -> Mapping[str, str]:
        """Hand one mail over; return the recipients that the server refused (and why) although it
        accepted the mail for others.

        `patient`: do not hand it over while any recipient has a temporary error. Raises
        MailDelayed, MailRefused or MailUncertain.
        """


class Archive(Protocol):
    """Copies of sent mail."""

    @property
    def authoritative(self) -> bool:
        """Whether mail is delivered into this archive, so that a missing mail was not sent."""

    def holds(self, message_id: str) -> bool: ...

    def keep(self, message: bytes) -> None:
        """Keep a copy of a mail that a server accepted; does nothing if mail is delivered to the
        archive itself.
        """


class DeliveryFate(StrEnum):
    SENT = "sent"
    DELAYED = "delayed"
    HELD = "held"
    UNKNOWN = "unknown"
    UNSETTLED = "unsettled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """Result of this pass for one report, with a reason where needed."""

    report: int
    fate: DeliveryFate
    reason: str | None = field(default=None)


def send_due(
    outbox: Outbox, mailer: Mailer, archive: Archive, now: datetime, rules: SendRules
) -> list[SendResult]:
    """Settle interrupted mails, then send those that are due and that `rules` let leave. Safe to
    call at any time and after any crash.

    Only one caller works at a time; the others return an empty list. An unreachable server ends the
    pass.
    """
    results: list[SendResult] = []
    with outbox.turn() as mine:
        if not mine:
            return results
        for mail in outbox.sending():
            settled = _settle(outbox, archive, mail, now)
            results += [settled] if settled else []
        results += [
            _found(outbox, mail, now)
            for mail in outbox.in_doubt(now)
            if _turned_up(outbox, archive, mail, now)
        ]
        for mail in () if rules.stop else outbox.due(now):
            if not outbox.take(mail.report, now, now + SETTLE, partial(why_not, rules=rules)):
                continue
            try:
                results.append(_send(outbox, mailer, archive, mail, now))
            except MailDelayed as error:
                again = now + retry_after(mail.tries)
                outbox.back(mail.report, again, str(error))
                results.append(
                    SendResult(report=mail.report, fate=DeliveryFate.DELAYED, reason=str(error))
                )
                if error.unreachable:
                    break
    return results


def retry_after(tries: int) -> timedelta:
    """Return 30 s after the first failed try, doubled after each further one, up to an hour.

    The number of tries is unlimited.
    """
    return min(FIRST_RETRY * (1 << min(tries, 10)), LAST_RETRY)


def _settle(outbox: Outbox, archive: Archive, mail: Outgoing, now: datetime) -> SendResult | None:
    """Find out whether an interrupted mail was sent; None if it is back in the queue."""
    if archive.holds(mail.message_id):
        outbox.sent(mail.report, now, None)
        return SendResult(
            report=mail.report,
            fate=DeliveryFate.SENT,
            reason="found in the archive after an interruption",
        )
    if not archive.authoritative:
        reason = (
            "sending was interrupted and the mail server may or may not have accepted it; "
            "search for the Message-ID, then release or drop the report"
        )
        outbox.unknown(mail.report, reason, now + LOOK_AGAIN)
        return SendResult(report=mail.report, fate=DeliveryFate.UNKNOWN, reason=reason)
    if now < mail.next_try:
        return SendResult(
            report=mail.report,
            fate=DeliveryFate.UNSETTLED,
            reason="sending was interrupted; waiting to see whether the mail arrives",
        )
    outbox.back(
        mail.report, now, "sending was interrupted before the server accepted the mail; sent again"
    )
    return None


def _turned_up(outbox: Outbox, archive: Archive, mail: Outgoing, now: datetime) -> bool:
    """Return whether a copy of a mail in doubt has arrived: hidden copies arrive by mail, so they
    may be late.
    """
    arrived = archive.holds(mail.message_id)
    if not arrived:
        outbox.not_found(mail.report, now + LOOK_AGAIN)
    return arrived


def _found(outbox: Outbox, mail: Outgoing, now: datetime) -> SendResult:
    outbox.found(mail.report, now)
    return SendResult(
        report=mail.report, fate=DeliveryFate.SENT, reason="found in the archive later"
    )


def _send(
    outbox: Outbox, mailer: Mailer, archive: Archive, mail: Outgoing, now: datetime
) -> SendResult:
    """Hand over a mail in state `sending` once. Raises MailDelayed."""
    checkpoint("smtp: before send")
    try:
        refused = mailer.send(mail.message, mail.recipients, patient=mail.tries < PATIENT_TRIES)
    except MailRefused as error:
        outbox.held(mail.report, str(error))
        return SendResult(report=mail.report, fate=DeliveryFate.HELD, reason=str(error))
    except MailUncertain as error:
        outbox.wait(mail.report, now + SETTLE_SLOW, str(error))
        return SendResult(report=mail.report, fate=DeliveryFate.UNSETTLED, reason=str(error))
    checkpoint("smtp: after send")
    archive.keep(mail.message)
    checkpoint("archive: after keep")
    note = "; ".join(f"{address} was refused: {why}" for address, why in refused.items()) or None
    outbox.sent(mail.report, now, note)
    return SendResult(report=mail.report, fate=DeliveryFate.SENT, reason=note)
