"""Each test here runs on both stores; the part in memory needs no database (`-m memory`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from swingbot_db.engine import make_engine
from tests.contract.store.postgres import PostgresStore
from tests.contract.store.world import Store
from tests.database import fresh, server_url, template
from tests.fakes.store import MemoryStore


@pytest.fixture(scope="session")
def shared_engine(server_url: sa.URL, template: str) -> Iterator[sa.Engine]:
    """One database for all tests here: each undoes what it did."""
    with fresh(server_url, template) as url:
        engine = make_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture(params=[pytest.param("memory", marks=pytest.mark.memory), "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    engine: sa.Engine = request.getfixturevalue("shared_engine")
    with engine.connect() as conn, conn.begin() as whole_test:
        yield PostgresStore(conn)
        whole_test.rollback()


__all__ = ["server_url", "template"]
