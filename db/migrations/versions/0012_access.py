"""Tokens, sessions, requesters, uploads of attempts: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    run_sql("0012_access.sql")
