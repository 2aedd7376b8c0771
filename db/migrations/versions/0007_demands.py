"""Invalid runs and warm-up runs: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_sql("0007_demands.sql")
