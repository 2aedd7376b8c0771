"""Check whether Buildbot's own tables have the right version, without starting Buildbot (which
takes seconds).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory


def newest() -> str | None:
    """Return the revision that the installed Buildbot needs."""
    spec = importlib.util.find_spec("buildbot")
    assert spec is not None and spec.origin is not None
    config = Config()
    config.set_main_option("script_location", str(Path(spec.origin).parent / "db" / "migrations"))
    return ScriptDirectory.from_config(config).get_current_head()


def are_current(url: str) -> bool:
    """Return whether the tables are current.

    Raises sqlalchemy.exc.OperationalError if the database does not respond.
    """
    engine = sa.create_engine(
        sa.make_url(url).set(drivername="postgresql+psycopg2"),
        poolclass=sa.NullPool,
        connect_args={"connect_timeout": 10},
    )
    with engine.connect() as conn:
        return (
            MigrationContext.configure(
                conn, opts={"version_table_schema": "public"}
            ).get_current_revision()
            == newest()
        )
