"""Fixtures for all tests: the real kernel."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import swingbot.app  # noqa: F401 -- first: it keeps numpy to one thread
from swingbot_worker.site import Site, from_environment
from tests import kernels

# The tests of real kernels never skip: what they need is made on first use.
os.environ.setdefault("SWINGBOT_TEST_KERNEL", "cache")

# A busy machine fails no property: an example may take any time.
settings.register_profile("any load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any load")


@pytest.fixture
def host_files() -> Iterator[tuple[Path, Path]]:
    """A file of this user's home and one of the checkout, for a test to look for behind walls.

    Not their directories: below either may be the environment that the walls show.
    """
    with tempfile.NamedTemporaryFile(dir=Path.home(), prefix=".swingbot-test-") as file:
        yield Path(file.name), Path(__file__).resolve().parents[1] / "pyproject.toml"


@pytest.fixture(scope="session")
def site() -> Site:
    """This host's own cache: the base build is made once for all tests and the demo."""
    return from_environment()


@pytest.fixture(scope="session")
def kernel_repo(site: Site) -> tuple[Path, str]:
    """(bare repository, base commit) of the demo's kernel."""
    return kernels.kernel_repository(site)


@pytest.fixture(scope="session")
def base_kernel(site: Site) -> Path:
    """A bootable bzImage: the base commit with the embedded testbox's configuration."""
    return kernels.base_image(site)


@pytest.fixture(scope="session")
def wired_kernel(site: Site) -> Path:
    """The same with a network and the driver of a network card."""
    return kernels.base_image(site, kernels.WIRED)
