"""Reports drafted by the brain."""

from __future__ import annotations

import json
from datetime import date, datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from swingbot.core.incident.model import FirstMail
from swingbot.core.model import ids
from swingbot.core.model.statuses import OVER, ReportKind
from swingbot.core.moderation.filing import Filing
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.report.mails.digest import Improvement
from swingbot.core.report.mails.followup import Kind
from swingbot.service.ports.reports import NewReport, ReportOfIncident, WantedResult
from swingbot_db.store.access import VALID_TOKEN, subject_of
from swingbot_db.store.fragments import COMPARISON_OVER, FAMILY
from swingbot_db.store.outbox import columns_of
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


# The last decision of a person about the text of each report counts.
DECIDED: Final = """
SELECT r.metric, r.testbox, r.passed, count(*) AS reports, max(r.id) AS last,
       count(*) FILTER (WHERE d.act = 'release') AS released, count(*) FILTER (WHERE d.act = 'drop')
         AS dropped
FROM report r LEFT JOIN LATERAL (
    SELECT m.act FROM moderation m WHERE m.report = r.id AND m.counts
      AND m.act IN ('release', 'drop') ORDER BY m.id DESC LIMIT 1
) d ON true
WHERE r.kind = 'first' AND r.metric IS NOT NULL {more}
GROUP BY r.metric, r.testbox, r.passed ORDER BY r.metric, r.testbox, r.passed
"""


# Improvements without a mail of their own: swings that were not bisected, and culprits
# whose first mail is a draft.
_IMPROVEMENTS: Final = """
SELECT t.name AS tree, t.branch, s.testbox, coalesce(x.facts->>'label', '') AS label, s.unit_job,
  s.metric, coalesce(f.change_pct, s.change_pct) AS change_pct,
       coalesce(CASE WHEN f.status = 'credible_set' THEN k.conclusion->'culprits'->0->>'parent' END,
         b.commit) AS base,
       coalesce(f.commits[cardinality(f.commits)], h.commit) AS head,
       '' AS commit, '' AS subject, 'comparison' AS page, c.id AS number
FROM swing s JOIN comparison_pair c ON c.id = s.comparison LEFT JOIN comparison p ON p.id = s.proof
  JOIN tree t ON t.id = c.tree
JOIN variant b ON b.id = c.base JOIN variant h ON h.id = c.head JOIN testbox x ON x.name = s.testbox
LEFT JOIN bisection k ON k.id = s.bisection
LEFT JOIN v_searches f ON f.search = 'b' || k.id AND f.status IN ('credible_set', 'creep')
WHERE s.direction = 'better' AND s.state IN ('not_bisected', 'not_found')
  AND k.status IS DISTINCT FROM 'not_reproduced'
  AND coalesce(p.ended_at, c.ended_at) >= :begin AND coalesce(p.ended_at, c.ended_at) < :end
UNION ALL
SELECT t.name, t.branch, r.testbox, coalesce(x.facts->>'label', ''), w.unit_job, r.metric,
  w.change_pct, '', '', v.commit, v.subject, 'report', r.id
FROM report r JOIN incident i ON i.id = r.incident JOIN variant v ON v.id = i.culprit
  JOIN tree t ON t.id = i.tree JOIN testbox x ON x.name = r.testbox
JOIN LATERAL (SELECT unit_job, change_pct FROM comparison_row w WHERE w.comparison = i.comparison
  AND w.testbox = r.testbox AND w.metric = r.metric
              ORDER BY abs(w.change_pct) DESC LIMIT 1) w ON true
WHERE r.state = 'draft' AND r.kind = 'first' AND r.created_at >= :begin AND r.created_at < :end
LIMIT 2000
"""


class Reports(Rows):
    def reserve(self) -> int:
        return int(self.scalar("SELECT nextval(pg_get_serial_sequence('swingbot.report', 'id'))"))

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
        stored = self._stored(new)
        if new.result is not None:
            self.execute(
                "UPDATE result_mail SET report = :report WHERE id = :id",
                report=stored,
                id=new.result,
            )
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

    def _stored(self, new: NewReport) -> int:
        """Store the report and its mail, or return the older one in its stead."""
        values: dict[str, Any] = {
            "id": new.number,
            "incident": new.incident,
            "kind": new.kind,
            "revision": new.revision,
            "state": new.state,
            "message_id": new.message_id,
            "week": new.week,
            "alert": new.alert,
            "facts": None if new.facts is None else json.dumps(new.facts),
            "to_addrs": list(new.to),
            "cc_addrs": list(new.cc),
            "subject": new.subject,
            "body": new.body,
            **_filed(new.filing),
        }
        insert = f"""INSERT INTO report ({", ".join(values)}) OVERRIDING SYSTEM VALUE
          VALUES ({", ".join(f":{name}" for name in values)})
            ON CONFLICT DO NOTHING RETURNING id"""
        with_json = sa.text(insert).bindparams(sa.bindparam("left_out", type_=JSONB))
        if self.conn.execute(with_json, values).scalar() is None:
            return self._older(new)
        self.execute(
            "INSERT INTO outbox (report, message) VALUES (:id, :message)",
            id=new.number,
            message=new.message,
        )
        return new.number

    def _older(self, new: NewReport) -> int:
        older = self.scalar(
            "SELECT id FROM report WHERE CASE WHEN CAST(:incident AS bigint) IS NULL"
            " THEN week = :week OR (alert = :alert AND revision = :revision)"
            " ELSE incident = :incident AND kind = :kind AND (revision = :revision OR"
            " (kind = 'first' AND state <> 'dropped')) END"
            " ORDER BY revision <> :revision, id LIMIT 1",
            incident=new.incident,
            kind=new.kind,
            revision=new.revision,
            week=new.week,
            alert=new.alert,
        )
        assert older is not None, "it conflicts with a report that is stored"
        return int(older)

    def want_result(self, id: str, token: int | None) -> None:
        column, number = subject_of(id)
        self.execute(
            f"INSERT INTO result_mail ({column}, token) VALUES (:number, coalesce(:token,"
            " (SELECT id FROM access_token WHERE digest IS NULL))) ON CONFLICT DO NOTHING",
            number=number,
            token=token,
        )

    def wanted_results(self) -> list[WantedResult]:
        found = self.select(
            "SELECT m.id, m.bisection, m.comparison, c.kind, t.mail FROM result_mail m"
            f" JOIN access_token t ON t.id = m.token AND (t.digest IS NULL OR {VALID_TOKEN})"
            " LEFT JOIN comparison c ON c.id = m.comparison"
            " LEFT JOIN bisection b ON b.id = m.bisection"
            " WHERE m.report IS NULL AND (c.status = ANY(:over) OR b.status <> 'running')"
            " ORDER BY m.id",
            over=list(OVER),
        )
        return [
            WantedResult(
                row.id,
                ids.show("bisection", row.bisection)
                if row.comparison is None
                else ids.of_table(row.kind, row.comparison),
                row.mail,
            )
            for row in found
        ]

    def class_record(self, kind: ReportClass) -> ClassRecord:
        more = (
            "AND r.metric = :metric AND r.testbox = :testbox AND r.passed = CAST(:passed AS text[])"
        )
        row = self.select_one(
            DECIDED.format(more=more),
            metric=kind.metric,
            testbox=kind.testbox,
            passed=list(kind.gates),
        )
        return (
            ClassRecord()
            if row is None
            else ClassRecord(released=row.released, dropped=row.dropped)
        )

    def digest_weeks(self, since: date) -> set[date]:
        rows = self.select("SELECT week FROM report WHERE week >= :since", since=since)
        return {row.week for row in rows}

    def digest_week(self, report: int) -> date | None:
        week: date | None = self.scalar("SELECT week FROM report WHERE id = :id", id=report)
        return week

    def improvements_between(self, begin: datetime, end: datetime) -> list[Improvement]:
        improvements = []
        for row in self.select(_IMPROVEMENTS, begin=begin, end=end):
            facts = dict(row._mapping)
            facts["page"] = f"/{row.page}/{ids.show(row.page, facts.pop('number'))}"
            improvements.append(Improvement(**facts))
        return improvements


def _filed(filing: Filing | None) -> dict[str, Any]:
    """Columns that `filing` fills; a report without a filing is a dry run without a class."""
    if filing is None:
        return {"left_out": []}
    columns = columns_of(filing.addressed) | {
        "reason": "; ".join(filter(None, (filing.reason, filing.addressed.problem)))
    }
    kind = filing.kind
    return columns | (
        {"metric": kind.metric, "testbox": kind.testbox, "passed": list(kind.gates)} if kind else {}
    )
