"""Machines for the tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernel_fixtures import base_kernel, kernel_repo, site, wired_kernel
from tests.lab.iron import Iron, iron
from tests.lab.machine import Machine

__all__ = ["base_kernel", "kernel_repo", "site", "wired_kernel"]


@pytest.fixture(scope="module")
def threads() -> str:
    """Of the machine's processors: "single" where nothing but the way of an order counts,
    "multi" in a file that looks at what was measured.
    """
    return "single"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, threads: str) -> Iterator[Machine]:
    """A Debian machine that is up, for all tests of one file; each leaves it in its idle system."""
    if os.getuid() != 0:
        pytest.skip("the machine's disk is made by mmdebstrap and mke2fs as root")
    made = Machine.create(tmp_path_factory.mktemp("machine") / "m", threads=threads)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def testbox(tmp_path: Path, machine: Machine, base_kernel: Path) -> Iron:
    """A testbox on that machine, entered by kexec."""
    return iron(tmp_path, machine, base_kernel)
