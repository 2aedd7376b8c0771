"""A cluster's attempt has several testboxes: see the SQL beside this file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    run_sql("0016_lease_together.sql")
