"""Bring a database to the newest schema: Alembic for tables, `db/views/*.sql` for views.

Safe to call at every start and from several processes at once: an advisory lock makes them take turns.
"""

from __future__ import annotations

import sqlalchemy as sa

from swingbot_db import roles
from swingbot_jobs import resources

DB_DIR = resources.folder("db")
_LOCK = 0x5_1_16_B07  # any number, but always the same one


def run_sql(name: str) -> None:
    """Run a migration's SQL file; called by the migrations themselves."""
    from alembic import op

    op.get_bind().exec_driver_sql(
        (DB_DIR / "migrations" / "versions" / name).read_text().replace("%", "%%")
    )


class SchemaError(Exception):
    """Program and database are of different ages; the message says which is older and what to do."""


def known_revisions() -> list[str]:
    """The revisions that this program has migrations for, oldest first."""
    return sorted(
        file.name[:4]
        for file in (DB_DIR / "migrations" / "versions").glob("[0-9][0-9][0-9][0-9]_*.py")
    )


def revision(conn: sa.Connection) -> str | None:
    """The revision of the database's schema; None if there is none of ours."""
    if conn.execute(sa.text("SELECT to_regclass('swingbot.schema_version')")).scalar() is None:
        return None
    found = conn.execute(sa.text("SELECT version_num FROM swingbot.schema_version")).scalar()
    return None if found is None else str(found)


def check(conn: sa.Connection, *, older_too: bool = True) -> None:
    """Raise SchemaError for a database that a newer program has upgraded, and (`older_too`) for one that this program has yet to upgrade."""
    found, known = revision(conn), known_revisions()
    if found is not None and found > known[-1]:
        raise SchemaError(
            f"the database has schema {found}, this program knows {known[-1]} at most: it was upgraded by a newer swingbot;"
            " run that one, or restore the backup that was made before the upgrade"
        )
    if older_too and found != known[-1]:
        raise SchemaError(
            f"the database has {'no schema' if found is None else f'schema {found}'}, this program needs {known[-1]}: run `swingbot db upgrade`"
        )


def upgrade(engine: sa.Engine, to: str = "head") -> None:
    """Create or upgrade everything of ours. Forward only; nothing of Buildbot's is touched. Views are made for the head alone.

    Raises SchemaError if a newer program has been here.
    """
    # most commands only ask for the revision, and Alembic takes its time to import
    from alembic import command
    from alembic.config import Config

    with engine.begin() as conn:
        conn.execute(sa.text("SELECT pg_advisory_xact_lock(:n)"), {"n": _LOCK})
        check(conn, older_too=False)
        conn.execute(sa.text("CREATE SCHEMA IF NOT EXISTS swingbot"))
        config = Config()
        config.set_main_option("script_location", str(DB_DIR / "migrations"))
        config.attributes["connection"] = conn
        command.upgrade(config, to)
        for view in sorted((DB_DIR / "views").glob("*.sql")) if to == "head" else ():
            conn.exec_driver_sql(view.read_text().replace("%", "%%"))
        roles.grant(conn)
