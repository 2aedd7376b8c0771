"""Forecasts of kernel builds: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    run_sql("0022_build_forecast.sql")
