"""Means of boots, and samples without names: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    run_sql("0036_boot_means.sql")
