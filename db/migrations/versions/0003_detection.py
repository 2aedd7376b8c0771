"""Confirmation of swings before a bisection, noise records, anchors: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_sql("0003_detection.sql")
