"""Orders of a comparison or bisection: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    run_sql("0033_wants.sql")
