"""An attempt on a cluster has several testboxes: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    run_sql("0016_lease_together.sql")
