"""A real PostgreSQL for tests: one server a run, one fresh database a test, copied from a migrated
template.

A module whose tests make roles, which belong to the whole server, has a server of its own:

    pg, template = own_server, own_template
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
import sqlalchemy as sa

from swingbot_db.engine import make_engine
from swingbot_db.migrate import upgrade
from tests import postgres
from tests.postgres import OwnServer, Server

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def pg() -> Iterator[Server]:
    with postgres.shared_server() as shared:
        yield shared


@pytest.fixture(scope="session")
def template(pg: Server) -> str:
    return pg.template("migrated", migrate_new)


@pytest.fixture(scope="module")
def own_server() -> Iterator[OwnServer]:
    with postgres.own_server() as own:
        yield own


@pytest.fixture(scope="module")
def own_template(pg: Server) -> str:
    return pg.template("migrated", migrate_new)


def migrate_new(url: str) -> None:
    engine = make_engine(url)
    upgrade(engine)
    engine.dispose()


@contextmanager
def fresh(pg: Server, template: str) -> Iterator[str]:
    """The URL of a copy of `template` that is gone afterwards."""
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    yield pg.create(name, template)
    pg.drop(name)


@pytest.fixture
def empty_url(pg: Server) -> Iterator[str]:
    """The URL of a database that has no tables."""
    with fresh(pg, "template1") as url:
        yield url


@pytest.fixture
def old(empty_url: str) -> Iterator[sa.Engine]:
    """A database without swingbot's schema, for a test to migrate to an old one."""
    engine = make_engine(empty_url)
    yield engine
    engine.dispose()


@pytest.fixture
def db_url(pg: Server, template: str) -> Iterator[str]:
    """The URL of a fresh, migrated, empty database."""
    with fresh(pg, template) as url:
        yield url


@pytest.fixture
def fresh_databases(pg: Server, template: str) -> Iterator[Callable[[], str]]:
    """A function that makes one more fresh, migrated, empty database and gives its URL."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(fresh(pg, template))


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


def next_transaction(conn: sa.Connection) -> int:
    """The number of the next transaction that writes; it grows with each one."""
    number = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
    return int(conn.execute(sa.text(number)).scalar_one())
