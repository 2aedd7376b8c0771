"""Debian's kernels by several compilers: they build, and what comes out boots and measures.

A build from nothing takes 5 to 8 minutes of one processor; `.ci/lab` installs the packages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs.contract.orders import check_order, check_outcome
from swingbot_worker import kbuild
from swingbot_worker.kbuild import toolchain
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site
from tests.boot.lab import virtual_lab
from tests.boot.test_boot_outcomes import SMALL, samples
from tests.demo.tree import SOURCE_REF, kept_import
from tests.lab.debs import kernel_source

pytestmark = pytest.mark.timeout(7200)

KERNELS = (
    ("6.1", "gcc-11", 0),
    ("6.1", "gcc-12", 0),
    ("6.1", "clang-14", 0),
    ("6.1", "clang-14", 1),
    ("6.1", "clang-19", 0),
    ("6.12", "gcc", 0),
    ("6.12", "clang-19", 0),
)


def a_build(
    site: Site,
    release: str,
    compiler: str,
    layout: int,
    out: Path,
    *,
    kconfig: str = "vm-x86_64",
) -> dict[str, Any]:
    """Build Debian's kernel of that release as a worker does; its outcome."""
    order = kbuild.order_by_hand(
        site,
        repo=str(kept_import(kernel_source(release), site.cache, lambda line: None)),
        commit=SOURCE_REF,
        kconfig=kconfig,
        compiler=compiler,
        layout=layout,
    )
    return check_outcome(kbuild.build(BuildOrder.from_json(check_order(order)), out, site))


@pytest.mark.parametrize(("release", "compiler", "layout"), KERNELS)
def test_a_kernel_of_debian_builds_boots_and_measures(
    site: Site, tmp_path: Path, release: str, compiler: str, layout: int
) -> None:
    out = tmp_path / "kernel"
    built = a_build(site, release, compiler, layout, out)
    assert built["status"] == "built", built["reason"]
    version = toolchain.compiler_version(compiler)
    assert built["kernel_build"]["compiler_version"] == version
    config = (out / "config").read_text().splitlines()
    assert f'CONFIG_CC_VERSION_TEXT="{version}"' in config
    assert ("CONFIG_LD_IS_LLD=y" in config) == compiler.startswith("clang")
    assert (out / "functions.json.gz").exists(), (out / "build.log").read_text()[-2000:]
    lab = virtual_lab(tmp_path / "boot", out / "bzImage")
    booted = lab.boot(SMALL)
    assert (booted["status"], booted["reason"]) == ("up", None)
    assert booted["facts"]["kernel_release"].startswith(f"{release}.")
    assert "page-fault-job/0 page-fault.per_process_ops" in samples(lab.out / "results.tar", SMALL)
