"""How often a table may be judged: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0031"
down_revision = "0025"


def upgrade() -> None:
    run_sql("0031_stated_looks.sql")
