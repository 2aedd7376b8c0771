"""Journal of a bisection, input from people, and searches of merged branches: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_sql("0002_bisection_journal.sql")
