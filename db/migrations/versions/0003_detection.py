"""Swings that are proven before they are bisected, noise records, anchors: see the SQL beside this file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    run_sql("0003_detection.sql")
