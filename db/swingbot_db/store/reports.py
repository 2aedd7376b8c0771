"""Reports drafted by the brain."""

from __future__ import annotations

from datetime import date, datetime
from typing import Final

from swingbot.core.incident.model import FirstMail
from swingbot.core.model.statuses import ReportKind
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.report.mails.digest import Improvement
from swingbot.core.report.mails.followup import Kind
from swingbot.service.ports.reports import NewReport, ReportOfIncident
from swingbot_db import moderation, reports
from swingbot_db.store.fragments import COMPARISON_OVER, FAMILY
from swingbot_db.store.rows import Rows

# Follow-ups due in the thread of a sent first mail. A tip measured a while ago is not news: `still`
# uses recent ones only.
_TO_FOLLOW: Final = f"""{FAMILY},
  mail AS (SELECT f.root, r.kind, r.state, r.withdrawn, r.created_at, r.sent_at FROM report r
    JOIN family f ON f.id = r.incident),
  begun AS (SELECT i.id, i.status, i.fix_check, min(m.sent_at) AS sent_at FROM incident i
    JOIN mail m ON m.root = i.id AND m.kind = 'first' AND m.state = 'sent'
            WHERE i.status IN ('open', 'fixed', 'invalid') GROUP BY i.id)
  SELECT b.id, 'retraction' AS kind FROM begun b WHERE b.status = 'invalid'
    AND NOT EXISTS (SELECT FROM mail m WHERE m.root = b.id AND m.kind = 'retraction'
      AND m.withdrawn IS NULL)
  UNION ALL SELECT b.id, 'fixed' FROM begun b WHERE b.status = 'fixed' AND b.fix_check IS NOT NULL
    AND NOT EXISTS (SELECT FROM mail m WHERE m.root = b.id AND m.kind = 'fixed'
      AND m.withdrawn IS NULL)
  UNION ALL SELECT DISTINCT b.id, 'update' FROM begun b JOIN sighting s ON s.incident = b.id
    AND s.report IS NULL JOIN comparison c ON c.id = s.comparison
    WHERE b.status = 'open' AND {COMPARISON_OVER}
  UNION ALL SELECT b.id, 'still' FROM begun b WHERE b.status = 'open' AND :days > 0
    AND b.sent_at < clock_timestamp() - make_interval(secs => 86400 * :days)
    AND NOT EXISTS (SELECT FROM mail m WHERE m.root = b.id
      AND m.created_at >= clock_timestamp() - make_interval(secs => 86400 * :days))
    AND EXISTS (SELECT FROM sighting s JOIN variant v ON v.id = s.culprit
      JOIN comparison c ON c.tree = v.tree AND c.kind = 'watch' AND c.status = 'done'
                WHERE s.incident = b.id AND c.ended_at > clock_timestamp() - interval '10 minutes')
  ORDER BY 1, 2"""


class Reports(Rows):
    def reserve(self) -> int:
        return reports.reserve_report_id(self.conn)

    def next_revision(self, incident: int, kind: ReportKind) -> int:
        return int(
            self.scalar(
                "SELECT coalesce(max(revision), 0) + 1 FROM report WHERE incident = :i AND kind ="
                " :k",
                i=incident,
                k=kind,
            )
        )

    def withdraw(
        self, incident: int, why: str, *kinds: ReportKind, queued: bool = True
    ) -> list[int]:
        states = ["draft", "held", *(["queued"] if queued else [])]
        gone = self.select(
            "UPDATE report SET state = 'dropped', withdrawn = :why WHERE incident = :i AND state ="
            " ANY(:states) AND (:all OR kind = ANY(:kinds)) RETURNING id",
            i=incident,
            why=why,
            states=states,
            all=not kinds,
            kinds=list(kinds),
        )
        numbers = sorted(row.id for row in gone)
        self.execute("UPDATE sighting SET report = NULL WHERE report = ANY(:r)", r=numbers)
        return numbers

    def of_incident(self, incident: int, kind: ReportKind) -> list[ReportOfIncident]:
        rows = self.select(
            f"{FAMILY} SELECT r.id, r.state, r.withdrawn IS NOT NULL AS withdrawn FROM report r"
            " JOIN family f ON f.id = r.incident"
            " WHERE f.root = :i AND r.kind = :k ORDER BY r.id",
            i=incident,
            k=kind,
        )
        return [ReportOfIncident(row.id, row.state, row.withdrawn) for row in rows]

    def first_mail(self, incident: int) -> FirstMail | None:
        row = self.select_one(
            f"{FAMILY} SELECT r.id, r.message_id, r.subject, o.message FROM report r JOIN family f"
            " ON f.id = r.incident JOIN outbox o ON o.report = r.id"
            " WHERE f.root = :i AND r.kind = 'first' AND r.state = 'sent' ORDER BY r.incident <>"
            " :i, r.sent_at, r.id LIMIT 1",
            i=incident,
        )
        if row is None:
            return None
        return FirstMail(
            report=row.id,
            message_id=row.message_id,
            subject=row.subject,
            message=bytes(row.message),
        )

    def to_follow(self, still_days: float) -> list[tuple[int, Kind]]:
        return [(row.id, row.kind) for row in self.select(_TO_FOLLOW, days=still_days)]

    def add(self, new: NewReport) -> int:
        stored = reports.add_report(self.conn, new)
        if new.incident is not None and stored == new.number and new.kind in ("first", "update"):
            self._mark_reported(new.incident, new.number)
        return stored

    def _mark_reported(self, incident: int, report: int) -> None:
        """Mark the sightings of the incident as covered by `report`."""
        self.execute(
            "UPDATE sighting SET report = :r FROM comparison c WHERE incident = :i AND report IS"
            f" NULL AND c.id = comparison AND {COMPARISON_OVER}",
            i=incident,
            r=report,
        )

    def class_record(self, kind: ReportClass) -> ClassRecord:
        return moderation.class_record(self.conn, kind)

    def digest_weeks(self, since: date) -> set[date]:
        return moderation.digest_weeks(self.conn, since)

    def improvements_between(self, begin: datetime, end: datetime) -> list[Improvement]:
        return moderation.improvements_between(self.conn, begin, end)
