"""Alert about a disk that is nearly full: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    run_sql("0015_disk_alert.sql")
