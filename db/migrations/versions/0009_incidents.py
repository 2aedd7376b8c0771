"""Sightings and history of incidents: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    run_sql("0009_incidents.sql")
