"""Trust of trees and variants: see the SQL file."""

from __future__ import annotations

from swingbot_db.migrate import run_sql

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    run_sql("0014_trust.sql")
