"""Compilers of build workers: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    run_sql("0023_compilers.sql")
