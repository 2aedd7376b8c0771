"""Send the reports that are due, each at most once, even if a process dies in between.

A report is `queued`; it becomes `sending` (committed), is handed to the mail server, and becomes
`sent` (committed). SMTP cannot guarantee exactly-once delivery, so a report in `sending` after a
crash may or may not have left. The archive shows it: the Maildir that the embedded server delivers
to, or swingbot's own copies of mail that an external server accepted. A mail in the archive was
sent. A mail that is missing was not sent if mail is delivered into the archive itself. With an
external server it is `unknown`, and a person decides (`swingbot report release` sends it again).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from swingbot.core.model import ids
from swingbot.core.moderation.send_check import DAY_HOURS, SendRules, why_not
from swingbot.service.checkpoint import checkpoint
from swingbot.service.ports.outbox import OutboxMail
from swingbot.service.ports.transaction import OpenTransaction, Transaction

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """What sends the reports.

    `turn` yields True to one sender at a time; the turn of a sender that died is over.
    """

    begin: OpenTransaction
    turn: Callable[[], AbstractContextManager[bool]]
    mailer: Mailer
    archive: Archive
    rules: SendRules = field(default_factory=SendRules)
    # why a released mail must not be sent, by the present state of its testboxes; "": it may be
    recheck: Callable[[Transaction, OutboxMail], str] = lambda tx, mail: ""

    def send_due(self, now: datetime) -> list[SendResult]:
        """Settle interrupted mails, then send those that are due and that `rules` let leave. Safe
        to call at any time and after any crash.

        Only one caller works at a time; the others return an empty list. An unreachable server
        ends the pass.
        """
        with self.turn() as mine:
            if not mine:
                return []
            with self.begin("mails under way") as tx:
                sending, doubtful = (
                    tx.outbox.in_state("sending"),
                    tx.outbox.in_state("unknown", now),
                )
            results = [self._settle(mail, now) for mail in sending]
            results += [self._look_again(mail, now) for mail in doubtful]
            return [*filter(None, results), *self._send_queued(now)]

    def _send_queued(self, now: datetime) -> Iterator[SendResult]:
        with self.begin("mails due") as tx:
            due = [] if self.rules.stop else tx.outbox.in_state("queued", now)
        for number in [mail.report for mail in due]:
            if (mail := self._take(number, now)) is None:
                continue
            try:
                yield self._send(mail, now)
            except MailDelayed as error:
                again = now + retry_after(mail.tries)
                self._leave(mail, "back in queue", state="queued", next_try=again, error=str(error))
                yield _result(mail, DeliveryFate.DELAYED, str(error))
                if error.unreachable:
                    return

    def _take(self, report: int, now: datetime) -> OutboxMail | None:
        """queued -> sending, one more try; return the mail as it is now, and None if it must not
        be sent: mail is stopped, a person held or dropped it, or what has changed since it was
        written holds it.
        """
        with self.begin("report sending") as tx:
            mail = None if tx.outbox.stopped() else tx.outbox.lock(report)
            if mail is None or mail.state != "queued":
                return None
            sent = tx.outbox.sent_to(mail.recipients, now - timedelta(hours=DAY_HOURS))
            why = why_not(mail.recipients, mail.lists, sent, self.rules) or self.recheck(tx, mail)
            if why:
                tx.outbox.update(replace(mail, state="held", reason=why))
                return None
            tries = mail.tries + 1
            tx.outbox.update(replace(mail, state="sending", tries=tries, next_try=now + SETTLE))
        return mail

    def _leave(self, mail: OutboxMail, name: str, **changes: Any) -> None:
        """Change a mail in state `sending`, which only the sender moves."""
        with self.begin(f"report {name}") as tx:
            stored = tx.outbox.lock(mail.report)
            if stored is None or stored.state != "sending":
                number = ids.show("report", mail.report)
                raise RuntimeError(f"report {number} is not being sent; two senders are running")
            tx.outbox.update(replace(stored, **changes))

    def _settle(self, mail: OutboxMail, now: datetime) -> SendResult | None:
        """Find out whether an interrupted mail was sent; None if it is back in the queue."""
        if self.archive.holds(mail.message_id):
            self._leave(mail, "sent", state="sent", sent_at=now, error=None)
            found = "found in the archive after an interruption"
            return _result(mail, DeliveryFate.SENT, found)
        if not self.archive.authoritative:
            reason = (
                "sending was interrupted and the mail server may or may not have accepted it; "
                "search for the Message-ID, then release or drop the report"
            )
            again = now + LOOK_AGAIN
            self._leave(mail, "unknown", state="unknown", next_try=again, error=reason)
            return _result(mail, DeliveryFate.UNKNOWN, reason)
        if now < mail.next_try:
            waits = "sending was interrupted; waiting to see whether the mail arrives"
            return _result(mail, DeliveryFate.UNSETTLED, waits)
        error = "sending was interrupted before the server accepted the mail; sent again"
        self._leave(mail, "back in queue", state="queued", next_try=now, error=error)
        return None

    def _look_again(self, mail: OutboxMail, now: datetime) -> SendResult | None:
        """Settle a mail in doubt whose copy has arrived: hidden copies arrive by mail, so they may
        be late. Changes nothing if a person has decided in the meantime.
        """
        arrived = self.archive.holds(mail.message_id)
        with self.begin("report looked up") as tx:
            stored = tx.outbox.lock(mail.report)
            if stored is not None and stored.state == "unknown":
                tx.outbox.update(
                    replace(stored, state="sent", sent_at=now, error=None)
                    if arrived
                    else replace(stored, next_try=now + LOOK_AGAIN)
                )
        return _result(mail, DeliveryFate.SENT, "found in the archive later") if arrived else None

    def _send(self, mail: OutboxMail, now: datetime) -> SendResult:
        """Hand over a mail in state `sending` once. Raises MailDelayed."""
        checkpoint("smtp: before send")
        try:
            patient = mail.tries < PATIENT_TRIES
            refused = self.mailer.send(mail.message, mail.recipients, patient=patient)
        except MailRefused as error:
            self._leave(mail, "held", state="held", error=str(error))
            return _result(mail, DeliveryFate.HELD, str(error))
        except MailUncertain as error:
            self._leave(mail, "unsettled", next_try=now + SETTLE_SLOW, error=str(error))
            return _result(mail, DeliveryFate.UNSETTLED, str(error))
        checkpoint("smtp: after send")
        self.archive.keep(mail.message)
        checkpoint("archive: after keep")
        note = "; ".join(f"{who} was refused: {why}" for who, why in refused.items()) or None
        self._leave(mail, "sent", state="sent", sent_at=now, error=note)
        return _result(mail, DeliveryFate.SENT, note)


def _result(mail: OutboxMail, fate: DeliveryFate, reason: str | None) -> SendResult:
    return SendResult(report=mail.report, fate=fate, reason=reason)


def retry_after(tries: int) -> timedelta:
    """Return 30 s after the first failed try, doubled after each further one, up to an hour.

    The number of tries is unlimited.
    """
    return min(FIRST_RETRY * (1 << min(tries, 10)), LAST_RETRY)
