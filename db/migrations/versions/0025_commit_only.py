"""Recipients whom only the commit names: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    run_sql("0025_commit_only.sql")
