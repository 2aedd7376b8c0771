"""Reports as the brain drafts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from swingbot.core.incident.model import FirstMail
from swingbot.core.model.statuses import FirstState, ReportKind, ReportState
from swingbot.core.moderation.filing import Filing
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.report.mails.digest import Improvement
from swingbot.core.report.mails.followup import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class NewReport:
    """A report with its mail, before either is stored. `number` was reserved, for the mail names it."""

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
    filing: Filing | None = None  # who would get it, and how it was judged
    week: date | None = None  # of a digest: its Monday
    alert: int | None = None  # of a mail about the lab itself
    facts: Mapping[str, Any] | None = None  # what the words were made of (`ReportFacts.to_json`)


class Reports(Protocol):
    """Reports as the brain drafts them."""

    def reserve(self) -> int:
        """The number of a report that is about to be written; its mail names it. Each call gives another one."""

    def next_revision(self, incident: int, kind: ReportKind) -> int:
        """The revision that the next report of this kind has: 1, then one more than the highest."""

    def withdraw(
        self, incident: int, why: str, *kinds: ReportKind, queued: bool = True
    ) -> list[int]:
        """Drop reports of an incident that have not left, of these kinds (all if none is named), and return their numbers sorted; they may be written again.

        Drafts and held mails go, and queued ones with `queued`; mails that are being sent are not touched. What they told of its sightings is untold again.
        """

    def of_incident(self, incident: int, kind: ReportKind) -> list[tuple[int, ReportState, bool]]:
        """(id, state, withdrawn) of the reports of this kind of an incident and of those merged into it, by id."""

    def first_mail(self, incident: int) -> FirstMail | None:
        """The mail that began the thread: the incident's own where it was sent, else that of one that was merged into it. None if neither was sent."""

    def to_follow(self, still_days: float) -> list[tuple[int, Kind]]:
        """(incident, kind of short mail) of those whose first mail was sent and that have something to say, sorted; `still` every `still_days` at most, 0: never."""

    def add(self, new: NewReport) -> int:
        """Store a report under its reserved number and return that number. A report of the same incident, kind and revision (or week, or alert) stays, and its number is returned.

        A `first` or an `update` tells of every measured sighting of its incident.
        """

    def class_record(self, kind: ReportClass) -> ClassRecord:
        """What people did with the last reports of this class."""

    def digest_weeks(self, since: date) -> set[date]:
        """Weeks from `since` on that have a digest, by their first day."""

    def improvements_between(self, begin: datetime, end: datetime) -> list[Improvement]:
        """Improvements whose bisection ended in this time, for the digest."""
