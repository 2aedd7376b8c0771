"""For all tests: settings of hypothesis, times, files to look for behind walls."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.amount import examples
from tests.times import Times

# Tests start hundreds of processes, and each would compile all it imports; pytest itself would
# rewrite the assertions of every file again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Options of a make that runs the tests, as in `make -s quick`, are not those of a make in a test.
for name in ("MAKEFLAGS", "MFLAGS"):
    os.environ.pop(name, None)

# A busy machine fails no property: an example may take any time.
settings.register_profile(
    "any load",
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any load")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Times(config))


@pytest.fixture
def host_files() -> Iterator[tuple[Path, Path]]:
    """A file of this user's home and one of the checkout, for a test to look for behind walls.

    Not their directories: below either may be the environment that the walls show.
    """
    with tempfile.NamedTemporaryFile(dir=Path.home(), prefix=".swingbot-test-") as file:
        yield Path(file.name), Path(__file__).resolve().parents[1] / "pyproject.toml"
