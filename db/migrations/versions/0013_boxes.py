"""What testboxes do, leases that lapse, alerts: see the SQL beside this file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    run_sql("0013_boxes.sql")
