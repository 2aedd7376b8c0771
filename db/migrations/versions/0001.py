"""The schema that the first release begins with: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0001"
down_revision = None


def upgrade() -> None:
    run_sql("0001.sql")
