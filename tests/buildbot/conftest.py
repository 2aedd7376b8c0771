"""Each test gets a copy of a prepared database and a state directory."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.buildbot.lab import Lab, MakeLab, labs
from tests.database import own_server, pg
from tests.postgres import Server

__all__ = ["own_server", "pg"]


@pytest.fixture(scope="session")
def short_root() -> Iterator[Path]:
    """A directory with a short path, which the database's user can enter, unlike `tmp_path`."""
    root = Path(tempfile.mkdtemp(prefix="sb-"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def make_lab(pg: Server, short_root: Path) -> Iterator[MakeLab]:
    with labs(pg, short_root) as make:
        yield make


@pytest.fixture
def lab(make_lab: MakeLab) -> Lab:
    return make_lab()
