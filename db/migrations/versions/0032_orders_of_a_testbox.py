"""Orders of a testbox by their end: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    run_sql("0032_orders_of_a_testbox.sql")
