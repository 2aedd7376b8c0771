"""Send the reports that are due, each at most once, whatever dies in between.

A report is `queued`; it becomes `sending` (committed), then goes to the mail server, then becomes `sent`
(committed). SMTP cannot promise exactly once, so whoever finds a report in `sending` does not know whether
it left. The archive knows: the Maildir that the embedded server delivers to, or our own copy of what a foreign
server took. What is found there was sent. What is not found was not sent if the archive is where mail is
delivered; for a foreign server it is `unknown`, and a person decides (`swingbot report release` sends it again).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from swingbot.service.checkpoint import checkpoint

# How long a server may still be at work on a mail whose sender died. Shorter, and a mail could be looked up
# before it is delivered, be missed, and be sent twice.
SETTLE = timedelta(seconds=10)
# the same for a server that let our own time-out pass: longer than that time-out
SETTLE_SLOW = timedelta(seconds=60)
FIRST_RETRY, LAST_RETRY = timedelta(seconds=30), timedelta(hours=1)
PATIENT_TRIES = 10  # so often (three hours) a mail waits for a recipient that is only put off; then it goes to the others
# how often the archive is searched for a mail of which nobody knows whether it left
LOOK_AGAIN = timedelta(minutes=1)


class MailDelayed(Exception):
    """The mail was certainly not taken, and a later try may work. `unreachable`: the server did not answer at all."""

    def __init__(self, reason: str, *, unreachable: bool = False) -> None:
        super().__init__(reason)
        self.unreachable = unreachable


class MailRefused(Exception):
    """The mail was certainly not taken and never will be as it is; a person must look."""


class MailUncertain(Exception):
    """The mail was handed over and no answer came: it may have left or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A mail that may leave. `tries` counts hand-overs so far; `next_try` is when to try next, or when a hand-over has settled."""

    report: int
    message_id: str
    message: bytes
    recipients: tuple[str, ...]
    tries: int
    next_try: datetime


class Outbox(Protocol):
    """Where reports wait. Each method is one committed transaction."""

    def turn(self) -> AbstractContextManager[bool]:
        """Yield True to one sender at a time; the turn of a sender that died is over."""

    def sending(self) -> list[Outgoing]:
        """What somebody began to send and did not finish."""

    def in_doubt(self, now: datetime) -> list[Outgoing]:
        """What is `unknown` and due for another look into the archive."""

    def due(self, now: datetime) -> list[Outgoing]:
        """What is queued and due, oldest first."""

    def take(self, report: int, now: datetime, settled: datetime) -> bool:
        """queued -> sending, one more try, not to be looked up before `settled`.

        False if it must not leave: mail is stopped, somebody held or dropped it, or what has happened since it was written speaks against it
        (`core.moderation.leaving`): then it is held with that reason.
        """

    def sent(self, report: int, at: datetime, note: str | None) -> None:
        """sending -> sent."""

    def wait(self, report: int, settled: datetime, error: str) -> None:
        """Still sending; not to be looked up before `settled`."""

    def back(self, report: int, next_try: datetime, error: str) -> None:
        """sending -> queued."""

    def held(self, report: int, error: str) -> None:
        """sending -> held."""

    def unknown(self, report: int, error: str, look_again: datetime) -> None:
        """sending -> unknown."""

    def found(self, report: int, at: datetime) -> None:
        """unknown -> sent: a copy turned up. Nothing if a person has decided meanwhile."""

    def not_found(self, report: int, look_again: datetime) -> None:
        """Still unknown."""


class Mailer(Protocol):
    def send(
        self, message: bytes, recipients: Sequence[str], *, patient: bool = False
    ) -> Mapping[str, str]:
        """Hand one mail over; answer the recipients that the server refused (and why) while it took the mail for others.

        `patient`: do not hand it over while one of them is only put off. Raises MailDelayed, MailRefused or MailUncertain.
        """


class Archive(Protocol):
    """Copies of what left."""

    @property
    def authoritative(self) -> bool:
        """Mail is delivered here, so what is not here was not sent."""

    def holds(self, message_id: str) -> bool: ...

    def keep(self, message: bytes) -> None:
        """Keep a copy of what a server took; nothing where mail is delivered to the archive itself."""


class DeliveryFate(StrEnum):
    SENT = "sent"
    DELAYED = "delayed"
    HELD = "held"
    UNKNOWN = "unknown"
    UNSETTLED = "unsettled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What became of one report in this pass, and why where that needs saying."""

    report: int
    fate: DeliveryFate
    reason: str | None = field(default=None)


def send_due(outbox: Outbox, mailer: Mailer, archive: Archive, now: datetime) -> list[Sent]:
    """Settle what was interrupted, then send what is due. Safe to call at any time and after any crash.

    Only one caller at a time works; the others answer nothing. A server that cannot be reached ends the pass.
    """
    results: list[Sent] = []
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
        for mail in outbox.due(now):
            if not outbox.take(mail.report, now, now + SETTLE):
                continue
            try:
                results.append(_send(outbox, mailer, archive, mail, now))
            except MailDelayed as error:
                again = now + retry_after(mail.tries)
                outbox.back(mail.report, again, str(error))
                results.append(
                    Sent(report=mail.report, fate=DeliveryFate.DELAYED, reason=str(error))
                )
                if error.unreachable:
                    break
    return results


def retry_after(tries: int) -> timedelta:
    """30 s after the first failed try, twice as long after each further one, at most an hour; a dead server is tried for ever."""
    return min(FIRST_RETRY * (1 << min(tries, 10)), LAST_RETRY)


def _settle(outbox: Outbox, archive: Archive, mail: Outgoing, now: datetime) -> Sent | None:
    """Find out what became of a mail whose sending was interrupted; None if it is back in the queue."""
    if archive.holds(mail.message_id):
        outbox.sent(mail.report, now, None)
        return Sent(
            report=mail.report,
            fate=DeliveryFate.SENT,
            reason="found in the archive after an interruption",
        )
    if not archive.authoritative:
        reason = "sending was interrupted and the mail server may or may not have taken it; look for the Message-ID, then release or drop the report"
        outbox.unknown(mail.report, reason, now + LOOK_AGAIN)
        return Sent(report=mail.report, fate=DeliveryFate.UNKNOWN, reason=reason)
    if now < mail.next_try:
        return Sent(
            report=mail.report,
            fate=DeliveryFate.UNSETTLED,
            reason="sending was interrupted; waiting to see whether the mail arrives",
        )
    outbox.back(mail.report, now, "sending was interrupted before the mail was taken; sent again")
    return None


def _turned_up(outbox: Outbox, archive: Archive, mail: Outgoing, now: datetime) -> bool:
    """Whether a copy of a mail in doubt is there now: hidden copies come by mail, so they may be late."""
    there = archive.holds(mail.message_id)
    if not there:
        outbox.not_found(mail.report, now + LOOK_AGAIN)
    return there


def _found(outbox: Outbox, mail: Outgoing, now: datetime) -> Sent:
    outbox.found(mail.report, now)
    return Sent(report=mail.report, fate=DeliveryFate.SENT, reason="found in the archive later")


def _send(outbox: Outbox, mailer: Mailer, archive: Archive, mail: Outgoing, now: datetime) -> Sent:
    """One hand-over of a mail that is `sending`. Raises MailDelayed."""
    checkpoint("smtp: before send")
    try:
        refused = mailer.send(mail.message, mail.recipients, patient=mail.tries < PATIENT_TRIES)
    except MailRefused as error:
        outbox.held(mail.report, str(error))
        return Sent(report=mail.report, fate=DeliveryFate.HELD, reason=str(error))
    except MailUncertain as error:
        outbox.wait(mail.report, now + SETTLE_SLOW, str(error))
        return Sent(report=mail.report, fate=DeliveryFate.UNSETTLED, reason=str(error))
    checkpoint("smtp: after send")
    archive.keep(mail.message)
    checkpoint("archive: after keep")
    note = "; ".join(f"{address} was refused: {why}" for address, why in refused.items()) or None
    outbox.sent(mail.report, now, note)
    return Sent(report=mail.report, fate=DeliveryFate.SENT, reason=note)
