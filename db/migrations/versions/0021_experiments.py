"""Arms of comparisons and experiments: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    run_sql("0021_experiments.sql")
