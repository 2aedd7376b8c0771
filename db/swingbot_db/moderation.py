"""Decisions of people about reports, the record of each class, and the switch for all mail."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot.core.moderation.ruling import ClassRecord, ReportClass
from swingbot.core.report.mails.digest import Improvement
from swingbot_db.reports import note_act

# The last decision of a person about the text of each report counts.
_DECIDED = """
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


def class_record(conn: sa.Connection, kind: ReportClass) -> ClassRecord:
    """The decisions of people about the first mails of this class."""
    more = "AND r.metric = :metric AND r.testbox = :testbox AND r.passed = CAST(:passed AS text[])"
    values = {"metric": kind.metric, "testbox": kind.testbox, "passed": list(kind.gates)}
    row = conn.execute(sa.text(_DECIDED.format(more=more)), values).one_or_none()
    return ClassRecord() if row is None else ClassRecord(released=row.released, dropped=row.dropped)


def classes(conn: sa.Connection) -> list[tuple[ReportClass, ClassRecord, int, int]]:
    """(class, record, number of reports, latest report) of each class with a report."""
    rows = conn.execute(sa.text(_DECIDED.format(more="")))
    return [
        (
            ReportClass(metric=row.metric, testbox=row.testbox, gates=tuple(row.passed)),
            ClassRecord(released=row.released, dropped=row.dropped),
            row.reports,
            row.last,
        )
        for row in rows
    ]


def acts(conn: sa.Connection, reports: Sequence[int], most: int = 200) -> list[Any]:
    """Rows (report, act, who, why, was, at) about these reports, oldest first."""
    query = (
        "SELECT report, act, who, why, was, at FROM moderation WHERE report = ANY(:ids)"
        " ORDER BY id LIMIT :most"
    )
    return list(conn.execute(sa.text(query), {"ids": list(reports), "most": most}))


def set_switch(conn: sa.Connection, *, stopped: bool, who: str, why: str) -> bool:
    """Stop or resume all mail; return whether that changed anything.

    Waits for a mail that is being claimed by the sender.
    """
    update = (
        "UPDATE mail_switch SET stopped = :stopped, who = :who, why = nullif(:why, ''),"
        " at = now() WHERE stopped <> :stopped"
    )
    changed = (
        conn.execute(sa.text(update), {"stopped": stopped, "who": who, "why": why}).rowcount == 1
    )
    if changed:
        note_act(conn, "stop" if stopped else "resume", who=who, why=why)
    return changed


def switch(conn: sa.Connection) -> Any:
    """The row (stopped, who, why, at), with the reports that are being sent now (`sending`)."""
    query = (
        "SELECT stopped, who, why, at, ARRAY(SELECT id FROM report WHERE state ="
        " 'sending' ORDER BY id) AS sending FROM mail_switch"
    )
    return conn.execute(sa.text(query)).one()


# Improvements without a mail of their own: swings that were noted but not bisected, and culprits
# whose first mail is a draft.
_IMPROVEMENTS = """
SELECT t.name AS tree, t.branch, s.testbox, coalesce(x.facts->>'label', '') AS label, s.unit_job,
  s.metric, s.change_pct,
       b.commit AS base, h.commit AS head, '' AS commit, '' AS subject, 'comparison' AS page, c.id
         AS number
FROM swing s JOIN comparison_pair c ON c.id = s.comparison LEFT JOIN comparison p ON p.id = s.proof
  JOIN tree t ON t.id = c.tree
JOIN variant b ON b.id = c.base JOIN variant h ON h.id = c.head JOIN testbox x ON x.name = s.testbox
WHERE s.direction = 'better' AND s.state IN ('noted', 'not_found')
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


def improvements_between(conn: sa.Connection, begin: datetime, end: datetime) -> list[Improvement]:
    """Improvements of that period without a mail of their own."""
    improvements = []
    for row in conn.execute(sa.text(_IMPROVEMENTS), {"begin": begin, "end": end}).mappings():
        facts = dict(row)
        facts["page"] = f"/{row['page']}/{ids.show(row['page'], facts.pop('number'))}"
        improvements.append(Improvement(**facts))
    return improvements


def digest_weeks(conn: sa.Connection, since: date) -> set[date]:
    """Mondays of the weeks from `since` on that have a digest."""
    return set(
        conn.execute(
            sa.text("SELECT week FROM report WHERE week >= :since"), {"since": since}
        ).scalars()
    )
