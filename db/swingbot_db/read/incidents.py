"""Incidents: effects of their commits, decisions of people, and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import sqlalchemy as sa

from swingbot.core.incident.impact import Impact, MeasuredRow, impacts
from swingbot.core.incident.level import recovered
from swingbot.core.model import documents, ids
from swingbot.core.model.comparison_row import ComparisonRow
from swingbot.core.model.cursor import ListPiece
from swingbot.core.model.documents import (
    Bisection,
    Gate,
    Incident,
    LooksFixed,
    Place,
    Sighting,
)
from swingbot.core.model.statuses import (
    Direction,
    IncidentStatus,
    ReportKind,
    ReportState,
    words,
)
from swingbot.core.table.verdict import in_words

from .bisections import bisection
from .moderation import ERROR, MESSAGE, TO, moderated
from .proof import gates
from .rows import VALUES, Filters, Row, SortKey, by_id, has_part, piece, rows, shown, where
from .tables import rows_of
from .why import why

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
_REPORT = f"""
SELECT r.id, r.incident, r.kind, r.revision, r.state, r.message_id, {TO}, r.cc_addrs AS cc,
  r.subject, r.body, r.created_at, r.sent_at,
       coalesce(octet_length(o.message), octet_length(r.body)) AS size, {MESSAGE}, o.tries,
         {ERROR}, o.next_try, m.comparison, m.bisection, c.kind AS "table"
FROM report r LEFT JOIN outbox o ON o.report = r.id LEFT JOIN result_mail m ON m.report = r.id
  LEFT JOIN comparison c ON c.id = m.comparison WHERE r.id = :id
"""
# What each search of an incident found, with the size that its mail has; a copy of the culprit in
# another tree has a commit of its own. `of` are the incidents.
_EFFECTS = """
WITH searches AS MATERIALIZED (
  SELECT search, commits, change_pct, low_pct, high_pct FROM v_searches
  WHERE status IN ('culprit', 'several')
), effect AS MATERIALIZED (
  SELECT s.incident, b.id AS bisection, b.tree, b.testbox, b.unit_job, b.metric, y.root,
    f.change_pct, f.low_pct, f.high_pct,
    (b.conclusion->>'spread_ratio')::double precision AS spread_ratio,
    CASE WHEN f.change_pct IS NULL OR d.better IS NULL THEN coalesce(w.direction, 'changed')
      WHEN (f.change_pct > 0) = (d.better = 'higher') THEN 'better' ELSE 'worse' END AS direction
  FROM sighting s JOIN bisection b ON b.id = s.bisection JOIN variant v ON v.id = s.culprit
  JOIN bisection_family y ON y.id = b.id
  LEFT JOIN searches f ON f.search = 'b' || b.id AND f.commits = ARRAY[v.commit]
  LEFT JOIN LATERAL (SELECT direction FROM swing
    WHERE bisection = y.root AND (testbox, unit_job, metric) = (b.testbox, b.unit_job, b.metric)
    ORDER BY id LIMIT 1) w ON true
  LEFT JOIN LATERAL (SELECT detail->>'better' AS better FROM comparison_row
    WHERE (unit_job, metric) = (b.unit_job, b.metric) AND testbox = b.testbox
    ORDER BY comparison DESC LIMIT 1) d ON true
  WHERE {of}
)"""
_LIST = (
    _EFFECTS.format(of="true")
    + """, whole AS (
  SELECT incident, array_agg(DISTINCT testbox) AS testboxes,
    count(DISTINCT (testbox, unit_job, metric)) - 1 AS more
  FROM effect GROUP BY incident
), top AS (
  SELECT DISTINCT ON (incident) * FROM effect
  ORDER BY incident, direction = 'worse' DESC, abs(change_pct) DESC NULLS LAST, testbox, metric
)
SELECT {key}, i.id, i.status, i.merged_into, i.fixed_by, i.created_at, t.name AS tree, v.commit,
       v.subject, v.author, top.metric, top.unit_job, top.change_pct, top.spread_ratio,
       CASE WHEN top.low_pct IS NOT NULL THEN ARRAY[top.low_pct, top.high_pct] END AS interval_pct,
       coalesce(top.direction, 'changed') AS direction, coalesce(whole.more, 0) AS more,
       coalesce(whole.testboxes, '{{}}') AS testboxes, own.who AS owner,
       (SELECT array_agg(ib.bisection ORDER BY ib.bisection) FROM incident_bisection ib
         WHERE ib.incident = i.id) AS bisections,
       (SELECT array_agg(r.id ORDER BY r.id) FROM report r WHERE r.incident = i.id) AS reports
FROM incident i JOIN tree t ON t.id = i.tree JOIN variant v ON v.id = i.culprit
LEFT JOIN top ON top.incident = i.id LEFT JOIN whole ON whole.incident = i.id
LEFT JOIN LATERAL (SELECT e.who FROM incident_event e
  WHERE e.incident = i.id AND e.who <> 'swingbot' ORDER BY e.id DESC LIMIT 1) own ON true
{where} ORDER BY {order} LIMIT :limit
"""
)
_SORTS: Final[Mapping[str, SortKey]] = {
    "newest": (("-i.id", int),),
    "oldest": (("i.id", int),),
    "change": (("-abs(coalesce(top.change_pct, 0))", float), ("-i.id", int)),
    "author": (('v.author COLLATE "C"', str), ("-i.id", int)),
}
_OF_EFFECT: Final = "EXISTS (SELECT FROM effect e WHERE e.incident = i.id AND {})"
FILTERS: Final = Filters(
    {
        "tree": "t.name",
        "status": "i.status",
        "direction": "coalesce(top.direction, 'changed')",
        "owner": "own.who",
        "testbox": _OF_EFFECT.format(f"e.testbox = ANY({VALUES})"),
        "test": _OF_EFFECT.format(has_part("e.unit_job")),
        "metric": _OF_EFFECT.format(f"e.metric = ANY({VALUES})"),
        "author": f"strpos(lower(v.author), lower(array_to_string({VALUES}, ','))) > 0",
        "since": "i.created_at",
    },
    {"status": words(IncidentStatus), "direction": words(Direction), "sort": tuple(_SORTS)},
)
# The places where a search found open incidents, but for what they improve, each with its later
# steps, if any: tips behind the one that brought the culprit. The machine made none of them.
_LATER = (
    _EFFECTS.format(of="s.incident = ANY(:incidents)")
    + """, place AS (
  SELECT DISTINCT ON (e.incident, e.tree, e.testbox, e.unit_job, e.metric)
    e.incident, t.name AS tree, e.testbox, e.unit_job, e.metric, e.bisection, bad.place,
    CASE WHEN e.spread_ratio IS NULL THEN e.change_pct END AS found_pct
  FROM effect e JOIN incident i ON i.id = e.incident AND i.status = 'open' AND i.fixed_by IS NULL
  JOIN tree t ON t.id = e.tree JOIN bisection root ON root.id = e.root
  LEFT JOIN v_tips bad ON bad.tree = t.name AND bad.commit = root.bad
  WHERE e.direction <> 'better'
  ORDER BY e.incident, e.tree, e.testbox, e.unit_job, e.metric, bad.place IS NULL, e.bisection DESC
), later AS (
  SELECT p.incident, p.bisection, f.commit, f.change_pct, coalesce(tip.place, upto.place) AS at,
    coalesce(tip.seen_at, upto.seen_at) AS seen_at
  FROM place p JOIN v_tree_findings f ON (f.tree, f.testbox, f.unit_job, f.metric)
      = (p.tree, p.testbox, p.unit_job, p.metric)
    AND f.kind = 'step' AND f.change_pct IS NOT NULL AND NOT f.machine
  LEFT JOIN v_tips tip ON tip.tree = p.tree AND tip.commit = f.commit
  LEFT JOIN bisection_family z ON 'b' || z.id = f.search
  LEFT JOIN bisection found ON found.id = z.root
  LEFT JOIN v_tips upto ON upto.tree = p.tree AND upto.commit = found.bad
  WHERE coalesce(tip.place, upto.place) > p.place
)
SELECT p.incident, p.bisection, p.testbox, p.metric, p.found_pct, l.commit, l.change_pct, l.seen_at,
  (SELECT x.subject FROM variant x WHERE x.commit = l.commit LIMIT 1) AS subject
FROM place p LEFT JOIN later l ON (l.incident, l.bisection) = (p.incident, p.bisection)
ORDER BY p.incident, p.bisection, l.at
"""
)
_LIST_REPORTS = f"""
SELECT {{key}},
  r.id, r.incident, r.kind, r.revision, r.state, r.message_id, {TO}, r.cc_addrs AS cc, r.subject,
  r.created_at, r.sent_at,
       coalesce(octet_length(o.message), octet_length(r.body)) AS size, {ERROR}
FROM report r LEFT JOIN outbox o ON o.report = r.id
{{where}} ORDER BY {{order}} LIMIT :limit
"""


REPORT_FILTERS: Final = Filters(
    {
        "state": "r.state",
        "kind": "r.kind",
        "incident": "r.incident",
        "since": "r.created_at",
    },
    {"state": words(ReportState), "kind": words(ReportKind)},
)


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
        "why": why(conn, row["comparison"], proof, {1: ids.show("variant", row["variant"])})
        if row["comparison"]
        else [],
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
        "looks_fixed": looks_fixed(conn, [number]).get(number),
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
    comparison, bisection_, kind = (row.pop(key) for key in ("comparison", "bisection", "table"))
    row["request"] = (
        shown("bisection", bisection_) if comparison is None else ids.of_table(kind, comparison)
    )
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
    conn: sa.Connection,
    filters: Mapping[str, Any] | None = None,
    limit: int = 50,
    after: str = "",
    fixed: Mapping[int, LooksFixed] | None = None,
) -> ListPiece:
    """Newest first. Filters: tree, status, direction, owner, testbox, test (a part of a unit job)
    and metric of any effect, author (a part of it), since.
    `sort` is `newest`, `oldest`, `change` or `author`.

    An incident has its largest regression, else its largest change; `owner` decided about it last;
    `looks_fixed` is `looks_fixed`, or of `fixed`. Raises ValueError for unknown filters and values.
    """
    given = dict(filters or {})
    FILTERS.check(conn, given)
    order = _SORTS[given.pop("sort", None) or "newest"]
    filtered = where(given, FILTERS.columns)
    some = piece(conn, _LIST, order, filtered, limit=limit, after=after)
    if fixed is None:
        fixed = looks_fixed(conn, [row["id"] for row in some if row["status"] == "open"])
    matches = []
    for row in some:
        culprit = {key: row.pop(key) for key in ("commit", "subject", "author")}
        lists = {
            "bisections": [shown("bisection", n) for n in row["bisections"] or []],
            "reports": [shown("report", n) for n in row["reports"] or []],
            "testboxes": sorted(row["testboxes"]),
        }
        matches.append(
            row
            | lists
            | {
                "id": shown("incident", row["id"]),
                "culprit": culprit,
                "merged_into": shown("incident", row["merged_into"]),
                "looks_fixed": fixed.get(row["id"]),
            }
        )
    return some.with_rows(matches)


def open_incidents(conn: sa.Connection) -> list[int]:
    """Numbers of the open incidents without a recorded fix."""
    found = rows(conn, "SELECT id FROM incident WHERE status = 'open' AND fixed_by IS NULL")
    return [row["id"] for row in found]


def looks_fixed(conn: sa.Connection, incidents: Sequence[int]) -> dict[int, LooksFixed]:
    """Since when the tips of a branch are back at the level from before an open incident, by
    incident; one that is not back everywhere where a search found that it is worse is left out.

    A person confirms it by `incident fixed-by`, which measures it.
    """
    searched: dict[int, dict[int, list[Row]]] = {}
    for row in rows(conn, _LATER, incidents=list(incidents)) if incidents else []:
        searched.setdefault(row["incident"], {}).setdefault(row["bisection"], []).append(row)
    found: dict[int, LooksFixed] = {}
    for incident, places in searched.items():
        steps = []
        for place in places.values():
            later = [row for row in place if row["commit"] is not None]
            at = recovered(place[0]["found_pct"], [row["change_pct"] for row in later])
            steps += [] if at is None else [later[at]]
        if len(steps) == len(places):
            last = max(steps, key=lambda row: str(row["seen_at"]))
            keys = ("commit", "subject", "change_pct", "testbox", "metric", "seen_at")
            found[incident] = cast(LooksFixed, {key: last[key] for key in keys})
    return found


def list_reports(
    conn: sa.Connection, filters: Mapping[str, Any] | None = None, limit: int = 50, after: str = ""
) -> ListPiece:
    """Newest first. Filters: state, kind, incident (a number), since."""
    REPORT_FILTERS.check(conn, filters)
    filtered = where(filters, REPORT_FILTERS.columns)
    some = piece(conn, _LIST_REPORTS, (("-r.id", int),), filtered, limit=limit, after=after)
    return some.with_rows(
        row | {"id": shown("report", row["id"]), "incident": shown("incident", row["incident"])}
        for row in some
    )
