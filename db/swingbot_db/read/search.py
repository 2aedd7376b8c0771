"""Search: commits, subjects, authors, mails, tests, metrics, testboxes, trees and ids."""

from __future__ import annotations

import re
from typing import Final

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot_db import limits

from .rows import Row, rows, shown

LIMIT: Final = 20  # matches of a kind
_HASH: Final = re.compile(r"[0-9a-f]{4,40}")
# Tables whose rows have a page of their own, by kind.
_TABLES: Final = {
    "tree": "tree",
    "variant": "variant",
    "order": "orders",
    "bisection": "bisection",
    "incident": "incident",
    "report": "report",
    "boot": "boot",
}
_BY_ID: Final = {kind: f"SELECT id FROM {table} WHERE id = :id" for kind, table in _TABLES.items()}
_BY_ID["comparison"] = "SELECT id FROM comparison WHERE id = :id AND kind <> 'experiment'"
_BY_ID["experiment"] = "SELECT id FROM comparison WHERE id = :id AND kind = 'experiment'"
# `words` are patterns that must all match; a commit may have a variant for each configuration.
_COMMITS: Final = """
SELECT max(v.id) AS variant, v.commit, max(v.subject) AS subject, max(v.author) AS author,
  (SELECT min(i.id) FROM incident i JOIN variant c ON c.id = i.culprit
    WHERE c.commit = v.commit AND i.merged_into IS NULL) AS incident,
  (SELECT max(c.id) FROM comparison_pair c JOIN variant s ON s.id IN (c.base, c.head)
    WHERE s.commit = v.commit) AS comparison
FROM variant v
WHERE CAST(:hash AS text) IS NOT NULL AND v.commit LIKE :hash
  OR v.subject || ' ' || v.author ILIKE ALL (CAST(:words AS text[]))
GROUP BY v.commit ORDER BY max(v.id) DESC LIMIT :limit
"""
_MAILS: Final = """
SELECT id, subject, state FROM report WHERE subject ILIKE ALL (CAST(:words AS text[]))
ORDER BY id DESC LIMIT :limit
"""
_TESTS: Final = """
SELECT DISTINCT j->>'name' AS name FROM boot_spec s, jsonb_array_elements(s.unit_jobs) j
WHERE j->>'name' ILIKE ALL (CAST(:words AS text[])) ORDER BY 1 LIMIT :limit
"""
_METRICS: Final = """
SELECT DISTINCT metric AS name FROM comparison_row
WHERE metric ILIKE ALL (CAST(:words AS text[])) ORDER BY 1 LIMIT :limit
"""
_TESTBOXES: Final = """
SELECT name, facts->>'label' AS label FROM testbox
WHERE name || ' ' || coalesce(facts->>'label', '') ILIKE ALL (CAST(:words AS text[]))
ORDER BY name LIMIT :limit
"""
_TREES: Final = """
SELECT name, branch, url FROM tree
WHERE state = 'watched' AND name || ' ' || branch || ' ' || url
  ILIKE ALL (CAST(:words AS text[])) ORDER BY name LIMIT :limit
"""


def search(conn: sa.Connection, query: str) -> Row:
    """What matches every word of `query`, at most LIMIT of each kind.

    Keys: `query` (as searched), `object` ({"kind", "id"} if it is the id of something that exists,
    else None), and the lists `commits`, `mails`, `tests`, `metrics`, `testboxes` and `trees`.
    """
    text = " ".join(query.replace("\0", "").split())[: limits.SEARCH_CHARACTERS]
    words = [f"%{_literal(word)}%" for word in text.split()]
    return {"query": text, "object": _object(conn, text), **_matches(conn, text.lower(), words)}


def _matches(conn: sa.Connection, text: str, words: list[str]) -> Row:
    if not words:  # no word matches everything
        kinds = ("commits", "mails", "tests", "metrics", "testboxes", "trees")
        return {kind: [] for kind in kinds}
    given = {"words": words, "limit": LIMIT}
    hash_ = f"{text}%" if _HASH.fullmatch(text) else None
    mails = rows(conn, _MAILS, **given)
    return {
        "commits": [_commit(row) for row in rows(conn, _COMMITS, hash=hash_, **given)],
        "mails": [row | {"id": shown("report", row["id"])} for row in mails],
        "tests": [row["name"] for row in rows(conn, _TESTS, **given)],
        "metrics": [row["name"] for row in rows(conn, _METRICS, **given)],
        "testboxes": rows(conn, _TESTBOXES, **given),
        "trees": rows(conn, _TREES, **given),
    }


def _literal(word: str) -> str:
    """A word as a LIKE pattern that matches itself."""
    return re.sub(r"([\\%_])", r"\\\1", word)


def _commit(row: Row) -> Row:
    return row | {kind: shown(kind, row[kind]) for kind in ("variant", "incident", "comparison")}


def _object(conn: sa.Connection, text: str) -> Row | None:
    try:
        kind, number = ids.read(text.lower())
    except ids.BadId:
        return None
    known = kind in _BY_ID and rows(conn, _BY_ID[kind], id=number)
    return {"kind": kind, "id": shown(kind, number)} if known else None
