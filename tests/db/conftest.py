"""Tests here need PostgreSQL; see tests/database.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from swingbot.app.settings import load
from tests.asking import ada, idle, serve
from tests.database import (
    conn,
    db_url,
    empty_url,
    engine,
    fresh_databases,
    old,
    pg,
    template,
)
from tests.fakelinux import make_fakelinux
from tests.fakes.brain import Brain, make_brain
from tests.fakes.mail import brain_environment

__all__ = [
    "ada",
    "conn",
    "db_url",
    "empty_url",
    "engine",
    "fresh_databases",
    "idle",
    "old",
    "pg",
    "serve",
    "template",
]


@pytest.fixture
def environment(tmp_path: Path, db_url: str) -> dict[str, str]:
    """Of `brain`, also for the command line."""
    return brain_environment(tmp_path / "state", db_url)


@pytest.fixture
def brain(tmp_path: Path, environment: dict[str, str], engine: sa.Engine) -> Iterator[Brain]:
    """A brain on the base commit of fakelinux."""
    make_fakelinux(tmp_path / "linux", [])
    with make_brain(load(environ=environment), engine, tmp_path / "linux") as made:
        yield made
