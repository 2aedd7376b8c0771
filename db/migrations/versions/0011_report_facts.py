"""Facts behind the text of a report: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    run_sql("0011_report_facts.sql")
