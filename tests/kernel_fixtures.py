"""Fixtures: the real kernel, made on first use."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_worker.site import Site, from_environment
from tests import kernels


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
