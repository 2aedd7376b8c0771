"""What happened lately in a tree or on a testbox, latest first: the entries of feeds."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from .rows import Row, rows, shown

LIMIT: Final = 50
# A swing changes while its cause is searched for: `updated` is when this last became known.
_SWINGS: Final = """
SELECT s.id, s.comparison, s.testbox, s.unit_job, s.metric, s.direction,
  coalesce(f.change_pct, s.change_pct) AS change_pct, s.state,
  s.source, (s.evidence->>'spread_ratio')::double precision AS spread_ratio,
  s.bisection, t.name AS tree, c.created_at AS published,
  greatest(c.created_at, c.ended_at, b.ended_at, i.created_at) AS updated,
  i.id AS incident, v.commit, v.subject
FROM swing s JOIN comparison c ON c.id = s.comparison JOIN tree t ON t.id = c.tree
LEFT JOIN bisection b ON b.id = s.bisection
LEFT JOIN (SELECT f.root, min(coalesce(i.merged_into, i.id)) AS id FROM bisection_family f
  JOIN incident_bisection o ON o.bisection = f.id JOIN incident i ON i.id = o.incident
  GROUP BY f.root) first ON first.root = s.bisection
LEFT JOIN incident i ON i.id = first.id LEFT JOIN variant v ON v.id = i.culprit
LEFT JOIN v_searches f ON f.root = s.bisection
  AND CASE WHEN v.id IS NULL THEN f.sole AND f.status IN ('credible_set', 'creep')
      ELSE f.commits = ARRAY[v.commit] END
WHERE s.state NOT IN ('known', 'refuted') AND b.status IS DISTINCT FROM 'not_reproduced'
  AND {of} ORDER BY updated DESC, s.id DESC LIMIT :limit
"""
_MAILS: Final = """
SELECT r.id, r.subject, r.sent_at AS published, r.incident FROM report r
JOIN incident i ON i.id = r.incident JOIN tree t ON t.id = i.tree
WHERE t.name = :name AND t.state = 'watched' AND r.sent_at IS NOT NULL
ORDER BY r.sent_at DESC LIMIT :limit
"""
# Lost, quarantined and drained testboxes, and their return; not each boot.
_EVENTS: Final = """
SELECT id, at AS published, was, state, why FROM testbox_event
WHERE testbox = :name AND (state IN ('lost', 'quarantined') OR was IN ('lost', 'quarantined'))
ORDER BY id DESC LIMIT :limit
"""


def tree_news(conn: sa.Connection, name: str) -> list[Row]:
    """Swings and sent mails of a watched tree.

    Keys: `kind` ("swing", "mail" or "state"), `number` (unique in its kind), `published`,
    `updated`, and what the kind has.
    """
    of = "t.name = :name AND t.state = 'watched'"
    mails = [
        row
        | {"kind": "mail", "updated": row["published"], "report": shown("report", row["id"])}
        | {"incident": shown("incident", row["incident"])}
        for row in rows(conn, _MAILS, name=name, limit=LIMIT)
    ]
    return _latest(_swings(conn, of, name) + mails)


def testbox_news(conn: sa.Connection, name: str) -> list[Row]:
    """Swings on a testbox, and when it was lost or quarantined and returned."""
    events = [
        row | {"kind": "state", "updated": row["published"]}
        for row in rows(conn, _EVENTS, name=name, limit=LIMIT)
    ]
    return _latest(_swings(conn, "s.testbox = :name", name) + events)


def _swings(conn: sa.Connection, of: str, name: str) -> list[Row]:
    return [
        row
        | {"kind": "swing"}
        | {kind: shown(kind, row[kind]) for kind in ("comparison", "bisection", "incident")}
        for row in rows(conn, _SWINGS.format(of=of), name=name, limit=LIMIT)
    ]


def _latest(entries: list[Row]) -> list[Row]:
    entries.sort(key=lambda entry: (entry["updated"], entry["kind"], entry["id"]), reverse=True)
    return [entry | {"number": entry.pop("id")} for entry in entries[:LIMIT]]
