"""Patches of rebased branches: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    run_sql("0019_patches.sql")
