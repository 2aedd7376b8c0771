"""State of testboxes, expiry of leases, alerts: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    run_sql("0013_boxes.sql")
