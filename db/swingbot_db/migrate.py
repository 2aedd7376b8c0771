"""Bring a database to the newest schema: Alembic for tables, `db/views/*.sql` for views.

Safe to call at every start and from several processes at once: an advisory lock makes them take turns.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command, op
from alembic.config import Config

DB_DIR = Path(__file__).resolve().parent.parent
_LOCK = 0x5_1_16_B07  # any number, but always the same one


def run_sql(name: str) -> None:
    """Run a migration's SQL file; called by the migrations themselves."""
    op.get_bind().exec_driver_sql((DB_DIR / "migrations" / "versions" / name).read_text().replace("%", "%%"))


def upgrade(engine: sa.Engine) -> None:
    """Create or upgrade everything of ours. Forward only; nothing of Buildbot's is touched."""
    with engine.begin() as conn:
        conn.execute(sa.text("SELECT pg_advisory_xact_lock(:n)"), {"n": _LOCK})
        conn.execute(sa.text("CREATE SCHEMA IF NOT EXISTS swingbot"))
        config = Config()
        config.set_main_option("script_location", str(DB_DIR / "migrations"))
        config.attributes["connection"] = conn
        command.upgrade(config, "head")
        for view in sorted((DB_DIR / "views").glob("*.sql")):
            conn.exec_driver_sql(view.read_text().replace("%", "%%"))
