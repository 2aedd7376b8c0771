"""Incidents and their reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from .bisections import bisection
from .comparisons import comparison
from .rows import Row, by_id, rows, shown, where

# What a report can prove, in the order of the mail. A gate that no code has tried yet is "not run", never "pass".
GATES = ("reproduced", "confirmed", "revert", "tip", "series_end", "layout", "code_executed")
_OF_BISECTION = ("id", "status", "metric", "unit_job", "testbox", "probability", "change_pct", "interval_pct", "boots")

_INCIDENT = """
SELECT i.id, i.status, i.comparison, i.created_at, t.name AS tree, v.commit, v.subject, v.author, v.id AS variant
FROM incident i JOIN tree t ON t.id = i.tree JOIN variant v ON v.id = i.culprit WHERE i.id = :id
"""
_BISECTIONS = "SELECT bisection FROM incident_bisection WHERE incident = :id ORDER BY bisection"
_REPORTS = "SELECT id, kind, state, subject, created_at, sent_at FROM report WHERE incident = :id ORDER BY id"
_REPORT = """
SELECT r.id, r.incident, r.kind, r.revision, r.state, r.message_id, r.to_addrs AS "to", r.cc_addrs AS cc, r.subject, r.body, r.created_at, r.sent_at,
       coalesce(octet_length(o.message), octet_length(r.body)) AS size, o.message, o.tries, o.error, o.next_try
FROM report r LEFT JOIN outbox o ON o.report = r.id WHERE r.id = :id
"""
_LIST = """
SELECT i.id, i.status, i.created_at, t.name AS tree, v.commit, v.subject,
       (SELECT array_agg(ib.bisection ORDER BY ib.bisection) FROM incident_bisection ib WHERE ib.incident = i.id) AS bisections,
       (SELECT array_agg(r.id ORDER BY r.id) FROM report r WHERE r.incident = i.id) AS reports
FROM incident i JOIN tree t ON t.id = i.tree JOIN variant v ON v.id = i.culprit
{where} ORDER BY i.id DESC LIMIT :limit
"""
_LIST_REPORTS = """
SELECT r.id, r.incident, r.kind, r.revision, r.state, r.message_id, r.to_addrs AS "to", r.cc_addrs AS cc, r.subject, r.created_at, r.sent_at,
       coalesce(octet_length(o.message), octet_length(r.body)) AS size, o.error
FROM report r LEFT JOIN outbox o ON o.report = r.id
{where} ORDER BY r.id DESC LIMIT :limit
"""


def incident(conn: sa.Connection, id: int | str) -> Row:
    """One culprit with all its swings: `rows` are those of parent against culprit, when that was measured."""
    row = by_id(conn, _INCIDENT, "incident", id, plural="incidents")
    number = row["id"]
    bisections = [bisection(conn, found["bisection"]) for found in rows(conn, _BISECTIONS, id=number)]
    reports = [report | {"id": shown("report", report["id"])} for report in rows(conn, _REPORTS, id=number)]
    return {
        "id": shown("incident", number),
        "status": row["status"],
        "tree": row["tree"],
        "culprit": {"commit": row["commit"], "subject": row["subject"], "author": row["author"], "variant": shown("variant", row["variant"])},
        "comparison": shown("comparison", row["comparison"]),
        "rows": comparison(conn, row["comparison"])["rows"] if row["comparison"] else [],
        "reports": [report["id"] for report in reports],
        "report_list": reports,
        "bisections": [found["id"] for found in bisections],
        "bisection_list": [{key: found[key] for key in _OF_BISECTION} for found in bisections],
        "evidence": _evidence(bisections),
        "created_at": row["created_at"],
    }


def _evidence(bisections: list[Row]) -> dict[str, str]:
    """A bisection names a culprit only after its ends and its confirmation held; other gates come from the conclusion itself."""
    gates = dict.fromkeys(GATES, "not run")
    if any(found["status"] == "culprit" for found in bisections):
        gates |= {"reproduced": "pass", "confirmed": "pass"}
    for found in bisections:
        gates |= {str(gate): str(word) for gate, word in (found.get("evidence") or {}).items()}
    return gates


def report(conn: sa.Connection, id: int | str) -> Row:
    """A report as DESIGN section 8 words it, with its `body`; `mail` is the whole message once it stands in the outbox."""
    row = by_id(conn, _REPORT, "report", id, plural="reports")
    message = row.pop("message")
    row["mail"] = bytes(message).decode("utf-8", "replace") if message is not None else None
    bisections = [bisection(conn, found["bisection"]) for found in rows(conn, _BISECTIONS, id=row["incident"])]
    return row | {"id": shown("report", row["id"]), "incident": shown("incident", row["incident"]), "evidence": _evidence(bisections)}


def list_incidents(conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50) -> list[Row]:
    """Latest first; filters: tree, status."""
    clause, params = where(filters, {"tree": "t.name", "status": "i.status"})
    found = []
    for row in rows(conn, _LIST.format(where=clause), limit=limit, **params):
        culprit = {"commit": row.pop("commit"), "subject": row.pop("subject")}
        ids = {"bisections": [shown("bisection", n) for n in row["bisections"] or []], "reports": [shown("report", n) for n in row["reports"] or []]}
        found.append(row | ids | {"id": shown("incident", row["id"]), "culprit": culprit})
    return found


def list_reports(conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50) -> list[Row]:
    """Latest first; filters: state, kind, incident (a number)."""
    clause, params = where(filters, {"state": "r.state", "kind": "r.kind", "incident": "r.incident"})
    found = rows(conn, _LIST_REPORTS.format(where=clause), limit=limit, **params)
    return [row | {"id": shown("report", row["id"]), "incident": shown("incident", row["incident"])} for row in found]
