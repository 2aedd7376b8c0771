"""Incidents: effects of their commits, decisions of people, and reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import sqlalchemy as sa

from swingbot.core.incident.impact import Impact, MeasuredRow, impacts
from swingbot.core.model import documents, ids
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.documents import Bisection, Gate, Incident, Place, Sighting
from swingbot.core.table.verdict import in_words

from .bisections import bisection
from .moderation import moderated
from .proof import gates
from .rows import Row, by_id, piece, rows, shown, where
from .tables import rows_of

# What a report can prove, in the order of the mail. A gate not yet tried is "not run", not "pass".
GATES = ("reproduced", "confirmed", "revert", "tip", "series_end", "layout", "code_executed")
_OF_BISECTION = (
    "id",
    "status",
    "metric",
    "unit_job",
    "testbox",
    "probability",
    "change_pct",
    "interval_pct",
    "boots",
)

# Columns of a page for each place where the culprit was measured.
_SHOWN = (
    *("testbox", "label", "tree", "branch", "commit", "comparison"),
    *("unit", "better", "base", "head", "change_pct", "interval_pct", "level", "verdict"),
)

_INCIDENT = """
SELECT i.id, i.status, i.comparison, i.created_at, i.merged_into, i.fixed_by, i.fix_check,
  t.name AS tree, v.commit, v.subject, v.author, v.id AS variant
FROM incident i JOIN tree t ON t.id = i.tree JOIN variant v ON v.id = i.culprit WHERE i.id = :id
"""
_BISECTIONS = "SELECT bisection FROM incident_bisection WHERE incident = :id ORDER BY bisection"
_REPORTS = (
    "SELECT id, kind, revision, state, subject, withdrawn, restricted, created_at, sent_at FROM"
    " report WHERE incident = :id ORDER BY id"
)
_SIGHTINGS = """
SELECT s.bisection, s.comparison, s.report, nullif(s.patch_id, '') AS patch_id, s.seen_at,
  t.name AS tree, t.branch, v.commit, v.subject, b.testbox, b.metric
FROM sighting s JOIN variant v ON v.id = s.culprit JOIN tree t ON t.id = v.tree
  JOIN bisection b ON b.id = s.bisection WHERE s.incident = :id ORDER BY s.id
"""
_HISTORY = (
    "SELECT act, who, reason, detail, at FROM incident_event WHERE incident = :id ORDER BY id"
)
_DUPLICATES = "SELECT id FROM incident WHERE merged_into = :id ORDER BY id"
_REPORT = """
SELECT r.id, r.incident, r.kind, r.revision, r.state, r.message_id, r.to_addrs AS "to", r.cc_addrs
  AS cc, r.subject, r.body, r.created_at, r.sent_at,
       coalesce(octet_length(o.message), octet_length(r.body)) AS size, o.message, o.tries, o.error,
         o.next_try
FROM report r LEFT JOIN outbox o ON o.report = r.id WHERE r.id = :id
"""
_LIST = """
SELECT {key}, i.id, i.status, i.merged_into, i.created_at, t.name AS tree, v.commit, v.subject,
       (SELECT array_agg(ib.bisection ORDER BY ib.bisection) FROM incident_bisection ib
         WHERE ib.incident = i.id) AS bisections,
       (SELECT array_agg(r.id ORDER BY r.id) FROM report r WHERE r.incident = i.id) AS reports
FROM incident i JOIN tree t ON t.id = i.tree JOIN variant v ON v.id = i.culprit
{where} ORDER BY {order} LIMIT :limit
"""
_LIST_REPORTS = """
SELECT {key},
  r.id, r.incident, r.kind, r.revision, r.state, r.message_id, r.to_addrs AS "to", r.cc_addrs
  AS cc, r.subject, r.created_at, r.sent_at,
       coalesce(octet_length(o.message), octet_length(r.body)) AS size, o.error
FROM report r LEFT JOIN outbox o ON o.report = r.id
{where} ORDER BY {order} LIMIT :limit
"""


def incident(conn: sa.Connection, id: int | str) -> Incident:
    """Return one incident: a culprit with all its effects.

    `rows` are those of the comparison of parent and culprit, if it was measured; `sightings` where
    the commit (or a copy of it) was found, each with its own such comparison; `impact` every
    benchmark metric that changed somewhere, with all places; `history` its events with the person
    behind each.
    """
    row = by_id(conn, _INCIDENT, "incident", id)
    number = row["id"]
    bisections = [bisection(conn, one["bisection"]) for one in rows(conn, _BISECTIONS, id=number)]
    reports = [
        report | {"id": shown("report", report["id"])} for report in rows(conn, _REPORTS, id=number)
    ]
    sightings = rows(conn, _SIGHTINGS, id=number)
    proof = gates(conn, number)
    return {
        "id": ids.show("incident", number),
        "status": row["status"],
        "tree": row["tree"],
        "culprit": {
            "commit": row["commit"],
            "subject": row["subject"],
            "author": row["author"],
            "variant": shown("variant", row["variant"]),
        },
        "comparison": shown("comparison", row["comparison"]),
        "rows": _rows(conn, row["comparison"]),
        "impact": [
            _impact(impact) for impact in impacts(_everywhere(conn, row["comparison"], sightings))
        ],
        "sightings": [_sighting(one) for one in sightings],
        "reports": [report["id"] for report in reports],
        "report_list": reports,
        "bisections": [one["id"] for one in bisections],
        "bisection_list": [
            {key: value for key, value in one.items() if key in _OF_BISECTION} for one in bisections
        ],
        "gates": proof,
        "evidence": _evidence(bisections, proof),
        "merged_into": shown("incident", row["merged_into"]),
        "duplicates": [
            ids.show("incident", one["id"]) for one in rows(conn, _DUPLICATES, id=number)
        ],
        "fixed_by": row["fixed_by"],
        "fix_check": shown("comparison", row["fix_check"]),
        "history": rows(conn, _HISTORY, id=number),
        "created_at": row["created_at"],
    }


def _rows(conn: sa.Connection, comparison: int | None) -> list[documents.Row]:
    return cast(list[documents.Row], rows_of(conn, comparison) if comparison else [])


def _sighting(row: Row) -> Sighting:
    kinds = ("bisection", "comparison", "report")
    return cast(Sighting, row | {kind: shown(kind, row[kind]) for kind in kinds})


def _everywhere(conn: sa.Connection, own: int | None, sightings: list[Row]) -> list[MeasuredRow]:
    """Rows of every comparison of the commit with its parent, the latest for each place.

    Adds `tree`, `commit` and `comparison`.
    """
    rows_by_key: dict[tuple[str, ...], Row] = {}
    places = {s["comparison"]: s for s in sightings if s["comparison"] is not None}
    if own is not None and own not in places and sightings:
        places[own] = sightings[0]  # measured again since
    for number in sorted(places):
        place = places[number]
        for row in rows_of(conn, number):
            more = {
                "tree": place["tree"],
                "branch": place["branch"],
                "commit": place["commit"],
                "comparison": shown("comparison", number),
            }
            rows_by_key[place["tree"], row["testbox"], row["unit_job"], row["metric"]] = row | more
    return [
        MeasuredRow(row=ComparisonRow.from_json(row), tree=row["tree"] or "", document=row)
        for row in rows_by_key.values()
        if not row["counter"]
    ]


def _impact(impact: Impact) -> documents.Impact:
    places = [
        {key: place.document.get(key) for key in _SHOWN} | {"words": in_words(place.row)}
        for place in impact.places
    ]
    return {
        "unit_job": impact.unit_job,
        "metric": impact.metric,
        "split": impact.split,
        "places": cast(list[Place], places),
    }


def _evidence(bisections: list[Bisection], proof: list[Gate]) -> dict[str, str]:
    """Return the result of each gate (pass, fail, not run, running); first of the bisections."""
    if proof:
        return {gate["gate"]: gate["status"] for gate in proof}
    gates = dict.fromkeys(GATES, "not run")
    if any(one["status"] == "culprit" for one in bisections):
        gates |= {"reproduced": "pass", "confirmed": "pass"}
    return gates


def report(conn: sa.Connection, id: int | str) -> Row:
    """Return a report (docs/json.md); `mail` is the whole message once it is in the outbox."""
    row = by_id(conn, _REPORT, "report", id)
    message = row.pop("message")
    row["mail"] = bytes(message).decode("utf-8", "replace") if message is not None else None
    bisections = [
        bisection(conn, one["bisection"]) for one in rows(conn, _BISECTIONS, id=row["incident"])
    ]
    return row | {
        **moderated(conn, row["id"]),
        "id": shown("report", row["id"]),
        "incident": shown("incident", row["incident"]),
        "evidence": _evidence(bisections, gates(conn, row["incident"]) if row["incident"] else []),
    }


def list_incidents(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50, after: str = ""
) -> ListPiece:
    """Newest first. Filters: tree, status."""
    filtered = where(filters, {"tree": "t.name", "status": "i.status"})
    matches = []
    some = piece(conn, _LIST, (("-i.id", int),), filtered, limit=limit, after=after)
    for row in some:
        culprit = {"commit": row.pop("commit"), "subject": row.pop("subject")}
        ids = {
            "bisections": [shown("bisection", n) for n in row["bisections"] or []],
            "reports": [shown("report", n) for n in row["reports"] or []],
        }
        matches.append(
            row
            | ids
            | {
                "id": shown("incident", row["id"]),
                "culprit": culprit,
                "merged_into": shown("incident", row["merged_into"]),
            }
        )
    return some.with_rows(matches)


def list_reports(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50, after: str = ""
) -> ListPiece:
    """Newest first. Filters: state, kind, incident (a number)."""
    filtered = where(filters, {"state": "r.state", "kind": "r.kind", "incident": "r.incident"})
    some = piece(conn, _LIST_REPORTS, (("-r.id", int),), filtered, limit=limit, after=after)
    return some.with_rows(
        row | {"id": shown("report", row["id"]), "incident": shown("incident", row["incident"])}
        for row in some
    )
