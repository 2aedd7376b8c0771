"""Upgrade a database to the newest schema: Alembic for tables, `db/views/*.sql` for views.

Safe to call at every start and from several processes at once, because of an advisory lock.
"""

from __future__ import annotations

import sqlalchemy as sa

from swingbot_db import roles
from swingbot_jobs import resources

DB_DIR = resources.folder("db")
_LOCK = 0x5_1_16_B07  # arbitrary but fixed


def run_sql(name: str) -> None:
    """Run a migration's SQL file; called by the migrations themselves."""
    from alembic import op

    op.get_bind().exec_driver_sql(
        (DB_DIR / "migrations" / "versions" / name).read_text().replace("%", "%%")
    )


class SchemaError(Exception):
    """Program and schema versions do not match; the message says which is older and what to do."""


def known_revisions() -> list[str]:
    """Revisions that this program has migrations for, oldest first."""
    return sorted(
        file.name[:4]
        for file in (DB_DIR / "migrations" / "versions").glob("[0-9][0-9][0-9][0-9]_*.py")
    )


def revision(conn: sa.Connection) -> str | None:
    """Revision of the database's schema; None without schema `swingbot`."""
    if conn.execute(sa.text("SELECT to_regclass('swingbot.schema_version')")).scalar() is None:
        return None
    version = conn.execute(sa.text("SELECT version_num FROM swingbot.schema_version")).scalar()
    return None if version is None else str(version)


def check(conn: sa.Connection, *, older_too: bool = True) -> None:
    """Raise SchemaError if a newer program has upgraded the database.

    With `older_too`, also if this program has not upgraded it yet.
    """
    version, known = revision(conn), known_revisions()
    if version is not None and version > known[-1]:
        raise SchemaError(
            f"the database has schema {version}, but this program only supports {known[-1]}: a"
            " newer swingbot upgraded it;"
            " run the newer version, or restore the backup from before the upgrade"
        )
    if older_too and version != known[-1]:
        raise SchemaError(
            f"the database has {'no schema' if version is None else f'schema {version}'}, but this"
            f" program needs {known[-1]}: run `swingbot db upgrade`"
        )


def upgrade(engine: sa.Engine, to: str = "head") -> None:
    """Create or upgrade schema `swingbot`; Buildbot's tables are not touched.

    Forward only. Views are created for the newest revision only. Raises SchemaError if a newer
    program has upgraded the database.
    """
    # most commands only read the revision, and Alembic is slow to import
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
