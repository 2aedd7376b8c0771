"""Swings of the spread between boots: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    run_sql("0035_spread_swings.sql")
