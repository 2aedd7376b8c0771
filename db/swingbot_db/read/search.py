"""Search: commits, subjects, authors, mails, tests, metrics, testboxes, trees and ids."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import sqlalchemy as sa

from swingbot.core.model import cursor, ids
from swingbot.core.model.cursor import ListPiece
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
# What matches, of each kind: `words` are patterns that must all match; a commit may have a variant
# for each configuration.
_FOUND: Final = {
    "commits": """
      SELECT max(id) AS variant, commit, max(subject) AS subject, max(author) AS author
      FROM variant
      WHERE CAST(:hash AS text) IS NOT NULL AND commit LIKE :hash
        OR subject || ' ' || author ILIKE ALL (CAST(:words AS text[]))
      GROUP BY commit""",
    "mails": """
      SELECT id, subject, state FROM report WHERE subject ILIKE ALL (CAST(:words AS text[]))""",
    "tests": """
      SELECT DISTINCT j->>'name' AS name FROM boot_spec s, jsonb_array_elements(s.unit_jobs) j
      WHERE j->>'name' ILIKE ALL (CAST(:words AS text[]))""",
    "metrics": """
      SELECT DISTINCT metric AS name FROM comparison_row
      WHERE metric ILIKE ALL (CAST(:words AS text[]))""",
    "testboxes": """
      SELECT name, facts->>'label' AS label FROM testbox
      WHERE name || ' ' || coalesce(facts->>'label', '') ILIKE ALL (CAST(:words AS text[]))""",
    "trees": """
      SELECT name, branch, url FROM tree
      WHERE state = 'watched' AND name || ' ' || branch || ' ' || url
        ILIKE ALL (CAST(:words AS text[]))""",
}
KINDS: Final = tuple(_FOUND)
# Newest first, else by name: a key of the rows that sorts upwards, with its type here and in SQL.
_NEWEST: Final = {"commits": "-variant", "mails": "-id"}
_BESIDE: Final = {
    "commits": """,
      (SELECT min(i.id) FROM incident i JOIN variant c ON c.id = i.culprit
        WHERE c.commit = found.commit AND i.merged_into IS NULL) AS incident,
      (SELECT max(c.id) FROM comparison_pair c JOIN variant s ON s.id IN (c.base, c.head)
        WHERE s.commit = found.commit) AS comparison"""
}
# One row at least, which has the number of all hits.
_PIECE: Final = """
WITH found AS ({found})
SELECT h.hits, f.* FROM (SELECT count(*) AS hits FROM found) h
LEFT JOIN LATERAL (
  SELECT {key} AS sort_key, found.*{beside} FROM found
  WHERE CAST(:after AS {type}) IS NULL OR {key} > CAST(:after AS {type})
  ORDER BY 1 LIMIT :limit
) f ON true ORDER BY f.sort_key
"""


def search(conn: sa.Connection, query: str, kind: str = "", after: str = "") -> Row:
    """What matches every word of `query`, at most LIMIT of each kind.

    Keys: `query` (as searched), `object` ({"kind", "id"} if it is the id of something that exists,
    else None), `hits` (how many there are of each kind), `next` (the cursor of the next ones of
    each kind that has more), and the lists `commits`, `mails`, `tests`, `metrics`, `testboxes` and
    `trees`. With `kind` only these are searched, `after` a cursor.

    Raises ValueError for an unknown kind, BadCursor.
    """
    if kind not in ("", *KINDS):
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {kind[:40]!r}")
    if after and not kind:
        raise ValueError("after continues the hits of one kind: give kind, too")
    text = " ".join(query.replace("\0", "").split())[: limits.SEARCH_CHARACTERS]
    document: Row = {"query": text, "object": None if kind else _object(conn, text)}
    document |= {"hits": {}, "next": {}, **{name: [] for name in KINDS}}
    for name in (kind,) if kind else KINDS:
        hits, found = _piece(conn, name, text, after)
        document["hits"][name], document[name] = hits, found
        if found.next is not None:
            document["next"][name] = found.next
    return document


def _piece(conn: sa.Connection, kind: str, text: str, after: str) -> tuple[int, ListPiece]:
    """How many there are, and some rows of them."""
    newest, words = kind in _NEWEST, [f"%{_literal(word)}%" for word in text.split()]
    given = cursor.decode(after, (int if newest else str,))[0] if after else None
    if not words:  # no word matches everything
        return 0, ListPiece()
    sql = _PIECE.format(
        found=_FOUND[kind],
        key=_NEWEST.get(kind, "name"),
        type="numeric" if newest else "text",
        beside=_BESIDE.get(kind, ""),
    )
    more = {}
    if kind == "commits":
        more["hash"] = f"{text.lower()}%" if _HASH.fullmatch(text.lower()) else None
    found = rows(conn, sql, words=words, after=given, limit=LIMIT + 1, **more)
    hits = found[0]["hits"]
    keys = [(row.pop("hits"), row.pop("sort_key"))[1] for row in found]
    shown_rows = [row for row, key in zip(found, keys, strict=True) if key is not None][:LIMIT]
    some = ListPiece(_ROWS[kind](row) for row in shown_rows)
    some.next = cursor.encode([keys[LIMIT - 1]]) if len(found) > LIMIT else None
    return hits, some


def _literal(word: str) -> str:
    """A word as a LIKE pattern that matches itself."""
    return re.sub(r"([\\%_])", r"\\\1", word)


def _commit(row: Row) -> Row:
    return row | {kind: shown(kind, row[kind]) for kind in ("variant", "incident", "comparison")}


def _name(row: Row) -> Any:
    return row["name"]


_ROWS: Final[Mapping[str, Callable[[Row], Any]]] = {
    "commits": _commit,
    "mails": lambda row: row | {"id": shown("report", row["id"])},
    "tests": _name,
    "metrics": _name,
    "testboxes": dict,
    "trees": dict,
}


def _object(conn: sa.Connection, text: str) -> Row | None:
    try:
        kind, number = ids.read(text.lower())
    except ids.BadId:
        return None
    known = kind in _BY_ID and rows(conn, _BY_ID[kind], id=number)
    return {"kind": kind, "id": shown(kind, number)} if known else None
