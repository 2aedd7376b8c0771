"""Tokens, and the log of their use."""

from __future__ import annotations

import sqlalchemy as sa

from swingbot_db.scope import can_limit
from swingbot_db.store.access import VALID_TOKEN

from .rows import Row, rows


def tokens(conn: sa.Connection, *, over: bool = False, who: str | None = None) -> list[Row]:
    """Tokens as printed by `swingbot token list --json`, oldest first, without their digests.

    `over` includes tokens that are no longer valid; `who` are those of this person.
    """
    query = f"""
        SELECT id, who, role, digest IS NULL AS key, trees, groups, levels, vouches, mail, note,
          made_by, made_at, expires_at, revoked_at, revoked_by, used_at, {VALID_TOKEN} AS good
        FROM access_token
        WHERE ({VALID_TOKEN} OR :over) AND (CAST(:who AS text) IS NULL OR who = :who) ORDER BY id
    """
    return rows(conn, query, over=over, who=who)


def access_events(conn: sa.Connection, most: int) -> list[Row]:
    """The log of token use, newest first."""
    query = "SELECT at, act, who, token, detail FROM access_event ORDER BY id DESC LIMIT :most"
    return rows(conn, query, most=most)


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
