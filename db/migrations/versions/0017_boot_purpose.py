"""Purpose of a boot: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    run_sql("0017_boot_purpose.sql")
