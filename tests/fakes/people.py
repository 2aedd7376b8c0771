"""People with a token."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from swingbot.core.access.roles import Person, Role
from swingbot.core.access.tokens import digest
from swingbot.service.access import create_token
from swingbot.service.ports.access import NewToken
from swingbot_db.store import transactions


def a_person(
    engine: sa.Engine,
    who: str,
    role: Role,
    text: str | None = None,
    groups: tuple[str, ...] | None = None,
    *,
    levels: bool = True,
) -> Person:
    """Store a new token of `who` (its text is `text`) and return its holder."""
    stored = digest(text or secrets.token_urlsafe(32))
    with transactions(engine)("token") as tx:
        new = NewToken(who=who, role=role, digest=stored, by="test", groups=groups, levels=levels)
        number = create_token(tx.access, new)
    return Person(who=who, role=role, token=number, groups=groups, levels=levels)
