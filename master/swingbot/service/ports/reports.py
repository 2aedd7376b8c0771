"""Reports as the brain drafts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Protocol

from swingbot.core.incident.model import FirstMail
from swingbot.core.moderation.filing import Filing
from swingbot.core.moderation.ruling import Record, ReportClass
from swingbot.core.report.mails.digest import Improvement
from swingbot.core.report.mails.followup import Kind


class Reports(Protocol):
    """Reports as the brain drafts them."""

    def reserve(self) -> int:
        """The number of a report that is about to be written; its mail names it."""

    def next_revision(self, incident: int, kind: str) -> int: ...

    def withdraw(self, incident: int, why: str, *kinds: str, queued: bool = True) -> list[int]:
        """Drop what has not left (of these kinds; all if none is named); it may be written anew. Mails that are being sent are not touched."""

    def of_incident(self, incident: int, kind: str) -> list[tuple[int, str, bool]]:
        """(id, state, withdrawn) of an incident's reports of a kind, and of those merged into it."""

    def first_mail(self, incident: int) -> FirstMail | None:
        """The mail that began the thread: the incident's own where it was sent, else that of one that was merged into it."""

    def to_follow(self, still_days: float) -> list[tuple[int, Kind]]:
        """(incident, kind of short mail) of those whose first mail was sent and that have something to say; `still` every `still_days` at most, 0: never."""

    def add(
        self,
        *,
        number: int,
        incident: int | None,
        kind: str,
        revision: int,
        message_id: str,
        to: Sequence[str],
        subject: str,
        body: str,
        message: bytes,
        state: str,
        cc: Sequence[str] = (),
        filing: Filing | None = None,
        week: date | None = None,
        facts: Mapping[str, Any] | None = None,
        alert: int | None = None,
    ) -> int: ...

    def class_record(self, kind: ReportClass) -> Record: ...

    def digest_weeks(self, since: date) -> set[date]: ...

    def improvements_between(self, begin: datetime, end: datetime) -> list[Improvement]: ...
