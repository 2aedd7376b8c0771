"""What people decided about reports, and what got better without a mail of its own."""

from __future__ import annotations

from datetime import date, datetime

from swingbot.core.moderation.ruling import Record, ReportClass
from swingbot.core.report.mails.digest import Improvement
from swingbot_db import moderation
from swingbot_db.store.rows import Rows


class ModerationRows(Rows):
    def class_record(self, kind: ReportClass) -> Record:
        return moderation.class_record(self.conn, kind)

    def digest_weeks(self, since: date) -> set[date]:
        return moderation.digest_weeks(self.conn, since)

    def improvements_between(self, begin: datetime, end: datetime) -> list[Improvement]:
        return moderation.improvements_between(self.conn, begin, end)
