"""People with a token."""

from __future__ import annotations

import secrets
from datetime import timedelta

import sqlalchemy as sa

from swingbot.core.access.roles import Person, Role
from swingbot_db import access


def a_person(engine: sa.Engine, who: str, role: Role) -> Person:
    """Store a new token of `who` and return its holder."""
    with engine.begin() as conn:
        token = access.create(
            conn,
            who=who,
            role=role,
            digest=secrets.token_hex(32),
            life=timedelta(days=1),
            note=None,
            by="test",
        )
    return Person(who=who, role=role, token=token)
