"""Reports as drafted by the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple, Protocol

from swingbot.core.incident.model import FirstMail
from swingbot.core.model.statuses import FirstState, ReportKind, ReportState
from swingbot.core.moderation.filing import Filing
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.report.mails.digest import Improvement
from swingbot.core.report.mails.followup import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReport:
    """A report with its mail, before either is stored.

    `number` was reserved because the mail contains it.
    """

    number: int
    kind: ReportKind
    revision: int
    message_id: str
    to: Sequence[str]
    subject: str
    body: str
    message: bytes  # as it is sent
    state: FirstState = "draft"
    incident: int | None = None  # None: a digest, or a mail about the lab itself
    cc: Sequence[str] = ()
    filing: Filing | None = None  # its recipients and the moderation decision
    week: date | None = None  # digest only: Monday of its week
    alert: int | None = None  # mail about the lab itself: number of its alert
    result: int | None = None  # mail to a requester: number of the result
    # facts that the text was written from (`ReportFacts.to_json`)
    facts: Mapping[str, Any] | None = None


class ReportOfIncident(NamedTuple):
    id: int
    state: ReportState
    withdrawn: bool


class WantedResult(NamedTuple):
    """A table or bisection that has ended, and who asked for a mail about it."""

    number: int
    id: str  # c5, e6 or b2
    address: str | None  # None: the operator's


class Reports(Protocol):
    """Reports as drafted by the service."""

    def reserve(self) -> int:
        """Reserve a number for a report that is about to be written; its mail contains it.

        Each call returns another number.
        """

    def next_revision(self, incident: int, kind: ReportKind) -> int:
        """Return the revision of the next report of this kind: 1, then one more than the
        highest.
        """

    def withdraw(
        self, incident: int, why: str, *kinds: ReportKind, queued: bool = True
    ) -> list[int]:
        """Drop unsent reports of an incident, of these kinds (default: all), and return their
        numbers sorted; they may be drafted again.

        Drafts and held mails are dropped, and with `queued` also queued ones; mails that are being
        sent are not touched. Their sightings count as unreported again.
        """

    def of_incident(self, incident: int, kind: ReportKind) -> list[ReportOfIncident]:
        """Return the reports of this kind of an incident and of those
        merged into it, by id.
        """

    def first_mail(self, incident: int) -> FirstMail | None:
        """Return the mail that started the thread: the incident's own if it was sent, else that of
        an incident merged into it. None if neither was sent.
        """

    def to_follow(self, still_days: float) -> list[tuple[int, Kind]]:
        """Return (incident, kind of short mail) for incidents whose first mail was sent and that
        have news, sorted; `still` at most every `still_days`, 0: never.
        """

    def add(self, new: NewReport) -> int:
        """Store a report under its reserved number and return that number. An existing report of
        the same incident, kind and revision (or week, or alert) stays, and its number is returned.
        With `result`, that result has its mail.

        A `first` or an `update` reports every measured sighting of its incident.
        """

    def want_result(self, id: str, token: int | None) -> None:
        """Record that the holder of a token (None: the operator) wants a mail when the table or
        bisection `id` is over; a second call changes nothing.
        """

    def wanted_results(self) -> list[WantedResult]:
        """Return the results of what has ended that have no mail yet, by number. Of a bisection the
        searches of branches that it merged may still run.

        A token that has expired or was revoked gets none; the operator always does.
        """

    def class_record(self, kind: ReportClass) -> ClassRecord:
        """Return the decisions of people about the last reports of this class."""

    def digest_weeks(self, since: date) -> set[date]:
        """Return the weeks from `since` on that have a digest, by their first day."""

    def digest_week(self, report: int) -> date | None:
        """Return the first day of the week of a digest; None for any other report."""

    def improvements_between(self, begin: datetime, end: datetime) -> list[Improvement]:
        """Return the improvements whose bisection ended in this interval, for the digest."""
