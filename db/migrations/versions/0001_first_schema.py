"""The first schema: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql("0001_first_schema.sql")
