"""Tokens, the log of their use, and a person's own tables."""

from __future__ import annotations

import sqlalchemy as sa

from swingbot.core.model import ids
from swingbot_db.scope import can_limit
from swingbot_db.store.access import VALID_TOKEN

from .rows import Row, rows


def tokens(conn: sa.Connection, *, over: bool = False, who: str | None = None) -> list[Row]:
    """Tokens as printed by `swingbot token list --json`, oldest first, without their digests.

    `over` includes tokens that are no longer valid; `who` are those of this person.
    """
    query = f"""
        SELECT id, who, role, digest IS NULL AS key, trees, groups, levels, vouches, note, made_by,
          made_at, expires_at, revoked_at, revoked_by, used_at, {VALID_TOKEN} AS good
        FROM access_token
        WHERE ({VALID_TOKEN} OR :over) AND (CAST(:who AS text) IS NULL OR who = :who) ORDER BY id
    """
    return rows(conn, query, over=over, who=who)


def access_events(conn: sa.Connection, most: int) -> list[Row]:
    """The log of token use, newest first."""
    query = "SELECT at, act, who, token, detail FROM access_event ORDER BY id DESC LIMIT :most"
    return rows(conn, query, most=most)


def asked_by(conn: sa.Connection, who: str, most: int) -> list[Row]:
    """A person's tables requested over the web, newest first.

    Keys: id, kind (of the id), tree, kernels (names of the rows), status, at, testbox_seconds.
    """
    query = """
        SELECT q.comparison AS id, c.kind, c.status, t.name AS tree, q.testbox_seconds, q.at,
          (SELECT array_agg(a.name ORDER BY a.arm) FROM comparison_arm a
            WHERE a.comparison = c.id) AS kernels
        FROM asked q JOIN comparison c ON c.id = q.comparison JOIN tree t ON t.id = c.tree
        WHERE q.who = :who ORDER BY q.comparison DESC LIMIT :most
    """
    tables = rows(conn, query, who=who, most=most)
    shown = [ids.of_table(row["kind"], row["id"]) for row in tables]
    return [
        row | {"id": id, "kind": ids.read(id)[0]} for row, id in zip(tables, shown, strict=True)
    ]


def refused_tokens(conn: sa.Connection) -> int:
    """Number of valid tokens that this database refuses, because it cannot limit what they read."""
    if can_limit(conn):
        return 0
    query = f"SELECT count(*) FROM access_token WHERE groups IS NOT NULL AND {VALID_TOKEN}"
    return int(conn.execute(sa.text(query)).scalar_one())


def testbox_groups(conn: sa.Connection) -> list[str]:
    """Groups of all testboxes that are not gone."""
    query = "SELECT DISTINCT tbox_group FROM testbox WHERE state <> 'gone' ORDER BY 1"
    return list(conn.execute(sa.text(query)).scalars())
