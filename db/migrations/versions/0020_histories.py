"""Histories of watched branches: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    run_sql("0020_histories.sql")
