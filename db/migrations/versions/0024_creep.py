"""Bisections that end with a creep: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    run_sql("0024_creep.sql")
