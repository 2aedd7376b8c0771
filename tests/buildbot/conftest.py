"""One PostgreSQL server for the whole directory.

Each test gets a copy of a prepared database and a state directory.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.buildbot.lab import PREPARED, Lab, Server, prepare_template

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def short_root() -> Iterator[Path]:
    """A directory with a short path, which the database's user can enter, unlike `tmp_path`."""
    root = Path(tempfile.mkdtemp(prefix="sb-"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def server(short_root: Path) -> Iterator[Server]:
    server = Server(short_root / "pg")
    try:
        prepare_template(server, short_root / "template")
        yield server
    finally:
        server.stop()


@pytest.fixture
def make_lab(server: Server, short_root: Path) -> Iterator[Callable[..., Lab]]:
    labs: list[Lab] = []

    def make(**how: dict[str, str]) -> Lab:
        number = next(_numbers)
        labs.append(
            Lab(short_root / f"lab{number}", server.create(f"lab{number}", PREPARED), **how)
        )
        return labs[-1]

    yield make
    for lab in labs:
        lab.stop()


@pytest.fixture
def lab(make_lab: Callable[..., Lab]) -> Lab:
    return make_lab()
