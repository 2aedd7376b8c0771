"""Changes not yet seen by a complete round: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    run_sql("0018_unseen.sql")
