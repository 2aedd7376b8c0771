"""Fencing tokens of leases: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    run_sql("0034_lease_fence.sql")
