"""Each test here runs on both stores; without `postgres`, in memory alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from swingbot_db.engine import make_engine
from tests.contract.store.postgres import PostgresStore
from tests.contract.store.world import Store
from tests.database import fresh, pg, template
from tests.fakes.store import MemoryStore
from tests.postgres import Server


@pytest.fixture(scope="session")
def shared_engine(pg: Server, template: str) -> Iterator[sa.Engine]:
    """One database for all tests here: each undoes what it did."""
    with fresh(pg, template) as url:
        engine = make_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    engine: sa.Engine = request.getfixturevalue("shared_engine")
    with engine.connect() as conn, conn.begin() as whole_test:
        yield PostgresStore(conn)
        whole_test.rollback()


__all__ = ["pg", "template"]
