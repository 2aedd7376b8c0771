"""Mails of reports on their way, what people decide about them, and the switch for all mail."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from swingbot.core.model.statuses import ModerationAct, ReportKind, ReportState
from swingbot.core.moderation.filing import Addressed


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMail:
    """The mail of a report, and how far it is."""

    report: int
    message_id: str
    message: bytes
    recipients: tuple[str, ...]  # bare addresses
    lists: tuple[str, ...]  # the mailing lists among them, in lower case
    state: ReportState
    tries: int  # hand-overs so far
    next_try: datetime  # of the next try, or when a hand-over has settled
    error: str | None = None
    reason: str | None = None  # why it is held
    sent_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressedMail:
    """A stored mail and the commit that it is about."""

    state: ReportState
    incident: int
    kind: ReportKind
    tree: str
    commit: str
    author: str
    base: str  # whose MAINTAINERS counts
    message_id: str
    subject: str
    body: str
    message: bytes
    testbox: str | None = None  # that it is about


class Outbox(Protocol):
    """Mails of reports on their way, and the log of decisions."""

    def in_state(self, state: ReportState, due: datetime | None = None) -> list[OutboxMail]:
        """Return the mails in this state, those with the earliest next try first; with `due`, only
        those whose next try has come.
        """

    def lock(self, report: int) -> OutboxMail | None:
        """Return the mail of a report; nobody else changes it until the transaction ends."""

    def update(self, mail: OutboxMail) -> None:
        """Store state, tries, next try, error, reason and time of sending."""

    def sent_to(self, recipients: Collection[str], since: datetime) -> dict[str, int]:
        """Return the mails by recipient, in lower case, that were sent since then or may have
        been.
        """

    def stopped(self) -> bool:
        """Return whether all mail is stopped; who stops it waits until the transaction ends."""

    def set_stopped(self, stopped: bool, who: str, why: str) -> bool:
        """Stop or resume all mail; return whether that changed anything."""

    def note(
        self,
        act: ModerationAct,
        *,
        who: str,
        why: str,
        report: int | None = None,
        was: ReportState | None = None,
        counts: bool = False,
    ) -> None:
        """Record a person's decision. `counts`: the mail was never handed to a server, so the
        decision is about its text.
        """

    def written(self, report: int) -> AddressedMail | None:
        """Return a mail with its commit; None for a mail about no commit, such as a digest."""

    def readdress(self, report: int, addressed: Addressed, message: bytes) -> None:
        """Set other recipients, and the message that names them."""
