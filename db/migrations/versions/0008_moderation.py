"""Moderation, the mail switch and digests: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    run_sql("0008_moderation.sql")
