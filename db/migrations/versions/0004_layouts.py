"""Layouts and testboxes of requested boots: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    run_sql("0004_layouts.sql")
