"""Proof gates of an incident, for JSON, pages and the command line."""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa

from swingbot.core.model.documents import Gate
from swingbot.core.proof.gates import GATES

from .rows import Row, number, rows, shown

_GATES = """
SELECT g.gate, g.status, g.reason, g.comparison, g.tries, g.foreseen, g.detail, g.asked_at,
  g.decided_at,
       c.status AS comparison_status, c.boots, c.first_k
FROM incident_gate g LEFT JOIN comparison c ON c.id = g.comparison WHERE g.incident = :id
"""
_BOOTS = """
SELECT s.side, x.id, x.k, x.outcome
FROM comparison_pair c CROSS JOIN LATERAL (VALUES ('base', c.base), ('head', c.head)) AS s (side,
  variant)
JOIN variant v ON v.id = s.variant JOIN kernel_build kb ON kb.build_key = v.build_key
  JOIN comparison_part p ON p.comparison = c.id
JOIN boot x ON x.image_sha256 = kb.image_sha256 AND x.testbox = p.testbox AND x.spec = p.spec
           AND x.series IN ('', 'c' || c.id) AND x.purpose = c.purpose AND x.k >= c.first_k
             AND x.k < c.first_k + c.boots
WHERE c.id = :id ORDER BY s.side, x.k
"""


def gates(conn: sa.Connection, incident: int | str) -> list[Gate]:
    """Gates in the order of the mail; empty before they are opened."""
    known = {row["gate"]: row for row in rows(conn, _GATES, id=number("incident", incident))}
    return [
        _gate(conn, known[name])
        for name in (*GATES, *sorted(known.keys() - GATES.keys()))
        if name in known
    ]


def _gate(conn: sa.Connection, row: Row) -> Gate:
    boots: dict[str, list[Any]] = {"base": [], "head": []}
    for boot in rows(conn, _BOOTS, id=row["comparison"]) if row["comparison"] is not None else []:
        boots[boot["side"]].append(shown("boot", boot["id"]))
    for name in ("first_k", "boots"):
        row.pop(name)
    document = row | {
        "question": GATES.get(row["gate"], ""),
        "comparison": shown("comparison", row["comparison"]),
        "boots": boots,
    }
    return cast(Gate, document)
