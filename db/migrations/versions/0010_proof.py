"""Proof gates between a culprit and its mail: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    run_sql("0010_proof.sql")
