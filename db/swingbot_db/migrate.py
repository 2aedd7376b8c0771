"""Upgrade a database to the newest schema: Alembic for tables, `db/views/*.sql` for views.

Safe to call at every start and from several processes at once, because of an advisory lock.
"""

from __future__ import annotations

import hashlib
import re

import sqlalchemy as sa

from swingbot_db import roles, scope
from swingbot_jobs import resources

DB_DIR = resources.folder("db")
VERSION_TABLE = "schema_revision"
_LOCK = 0x5_1_16_B07  # arbitrary but fixed
# Alembic's table in databases made before the first release, whose revisions had the same numbers.
_UNRELEASED = "swingbot.schema_version"


def run_sql(name: str) -> None:
    """Run a migration's SQL file; called by the migrations themselves."""
    from alembic import op

    op.get_bind().exec_driver_sql(
        (DB_DIR / "migrations" / "versions" / name).read_text().replace("%", "%%")
    )


class SchemaError(Exception):
    """Program and schema versions do not match; the message says which is older and what to do."""


def revisions() -> list[str]:
    """Revisions that this program has migrations for, oldest first."""
    versions = DB_DIR / "migrations" / "versions"
    return sorted(file.name[:4] for file in versions.glob("[0-9][0-9][0-9][0-9]*.py"))


def revision(conn: sa.Connection) -> str | None:
    """Revision of the database's schema; None without schema `swingbot`."""
    table = f"swingbot.{VERSION_TABLE}"
    if not _exists(conn, table):
        return None
    version = conn.execute(sa.text(f"SELECT version_num FROM {table}")).scalar()
    return None if version is None else str(version)


def digest(version: str) -> str:
    """SHA-256 of the SQL of all migrations up to revision `version`, comments and spaces apart."""
    files = sorted((DB_DIR / "migrations" / "versions").glob("[0-9][0-9][0-9][0-9]*.sql"))
    text = "\n".join(file.read_text() for file in files if file.name[:4] <= version)
    return hashlib.sha256(" ".join(re.sub("--.*", "", text).split()).encode()).hexdigest()


def _stored_digest(conn: sa.Connection) -> str | None:
    """Digest of the migrations that made the database: the comment on the version table."""
    of = "SELECT obj_description(to_regclass(:table), 'pg_class')"
    found = conn.execute(sa.text(of), {"table": f"swingbot.{VERSION_TABLE}"}).scalar()
    return None if found is None else str(found)


def _exists(conn: sa.Connection, table: str) -> bool:
    oid = conn.execute(sa.text("SELECT to_regclass(:table)"), {"table": table})
    return oid.scalar() is not None


def check(conn: sa.Connection, *, older_too: bool = True) -> None:
    """Raise SchemaError if the database was made before the first release, whose migrations still
    change, or if a newer program has upgraded it.

    With `older_too`, also if this program has not upgraded it yet.
    """
    version, newest = revision(conn), revisions()[-1]
    ours = version is None or version > newest or _stored_digest(conn) == digest(version)
    if _exists(conn, _UNRELEASED) or not ours:
        raise SchemaError(
            "the database was made by a swingbot from before the first release, which this version"
            " cannot read: save its results with the version that made it (`swingbot raw ID --out"
            " DIR` for each comparison, `swingbot backup DIR` for everything), and start this"
            " version with an empty database and state directory"
        )
    if version is not None and version > newest:
        raise SchemaError(
            f"the database has schema {version}, but this program only supports {newest}: a"
            " newer swingbot upgraded it;"
            " run the newer version, or restore the backup from before the upgrade"
        )
    if older_too and version != newest:
        raise SchemaError(
            f"the database has {'no schema' if version is None else f'schema {version}'}, but this"
            f" program needs {newest}: run `swingbot db upgrade`"
        )


def upgrade(engine: sa.Engine, to: str = "head") -> None:
    """Create or upgrade schema `swingbot`; Buildbot's tables are not touched.

    Forward only. Views are created for the newest revision only. Raises SchemaError as `check`.
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
        before = revision(conn)
        if before not in (None, revisions()[-1]):
            scope.forget_rows(conn)
        command.upgrade(config, to)
        if (now := revision(conn)) is not None and now != before:
            comment = f"COMMENT ON TABLE swingbot.{VERSION_TABLE} IS '{digest(now)}'"
            conn.exec_driver_sql(comment)
        if to == "head":
            views = [file.read_text() for file in sorted((DB_DIR / "views").glob("*.sql"))]
            for view in views:
                conn.exec_driver_sql(view.replace("%", "%%"))
            scope.limit_rows(conn, views)
        roles.grant(conn)
