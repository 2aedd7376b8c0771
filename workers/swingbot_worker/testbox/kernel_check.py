"""Check that a kernel has what its testbox needs, before the machine leaves its idle system."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swingbot_jobs.contract.kconfig import advice, load_fragments, missing
from swingbot_jobs.terminal import tell
from swingbot_jobs.testbox.definition import ClusterDriver, Testbox
from swingbot_jobs.testbox.ssh import SshDriver
from swingbot_jobs.testbox.tuning import TuningFinding
from swingbot_worker import InfraError, kbuild
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site
from swingbot_worker.testbox.kernel import Kernel, machine_of

_UNKNOWN: Final = "the kernel's configuration is known"
_CPUS: Final = re.compile(r"^CONFIG_NR_CPUS=(\d{1,9})$", re.M)


def kernel_findings(testbox: Testbox, given: str, site: Site) -> list[TuningFinding]:
    """Check kernel `given`, an image or REPO@COMMIT, against what `testbox` needs.

    A commit is configured as the testbox's `kconfig`, not built. Raises InfraError if there is no
    such image or commit.
    """
    image = Path(given)
    if image.is_file():
        return image_findings(testbox, image, site)
    repo, commit = repo_and_commit(given)
    if not repo:
        raise InfraError(
            f"--kernel {given}: there is no such file; give a kernel image, or REPO@COMMIT such as"
            " /srv/linux.git@v6.12."
        )
    if not testbox.kconfig:
        raise InfraError(
            f"{testbox.name}.yaml names no kconfig, such as server-x86_64, as which {commit} could"
            " be configured; set it, or give a kernel image."
        )
    with tempfile.TemporaryDirectory(prefix="swingbot-check-") as work:
        config = configured(site, Path(work), repo, commit, testbox.kconfig)
    return list(_of_config(testbox, config, site))


def image_findings(testbox: Testbox, image: Path, site: Site) -> list[TuningFinding]:
    """Return the same for an image, and whether its architecture fits. Raises OSError."""
    kernel = Kernel(image=image, build_key="", cache=site.cache, kconfig=site.kconfig)
    built, host = machine_of(image.read_bytes()), os.uname().machine
    config = kernel.config()
    found = [
        TuningFinding(
            what="the kernel is built for its architecture",
            ok=built == host,
            found=built or "not a kernel image",
            do="" if built == host else f"give a kernel image for {host}",
        )
    ]
    if config is not None:
        return [*found, *_of_config(testbox, config, site)]
    unknown = TuningFinding(
        what=_UNKNOWN,
        ok=False,
        found=f"neither in {image.name} nor beside it",
        do=f"put its .config beside it as {image.with_name('config')}, or build it with"
        " CONFIG_IKCONFIG=y",
    )
    return [*found, unknown]


def refusals(testbox: Testbox, image: Path, site: Site) -> list[str]:
    """Return the reasons not to boot an image there, in sentences.

    An unknown configuration is not one of them. Raises OSError.
    """
    return [
        f"{image} was not booted: {finding.found}; {finding.do}."
        for finding in image_findings(testbox, image, site)
        if not finding.ok and finding.what != _UNKNOWN
    ]


def repo_and_commit(text: str) -> tuple[str, str]:
    """Split REPO@COMMIT; both are empty if it is not one."""
    repo, _, commit = text.rpartition("@")
    return (repo, commit) if repo and commit else ("", "")


def configured(site: Site, out: Path, repo: str, commit: str, kconfig: str) -> str:
    """Return the .config of a commit with a configuration. Raises InfraError."""
    tell(f"configuring {commit} as {kconfig}")
    order = kbuild.order_by_hand(
        site, repo=repo, commit=commit, kconfig=kconfig, compiler="gcc", layout=0
    )
    return kbuild.configured(BuildOrder.from_json(order), out, site, tell)


def _of_config(testbox: Testbox, config: str, site: Site) -> Iterator[TuningFinding]:
    driver = testbox.driver
    needed = driver.kconfig_needed if isinstance(driver, SshDriver | ClusterDriver) else ()
    lacking = missing(needed, config)
    yield TuningFinding(
        what="the kernel has the options of kconfig_needed",
        ok=not lacking,
        found=f"it lacks {', '.join(lacking)}" if lacking else ", ".join(needed) or "none listed",
        do=advice(lacking, load_fragments(site.kconfig)) if lacking else "",
    )
    cpus = int(match[1]) if (match := _CPUS.search(config)) else 1
    yield TuningFinding(
        what=f"the kernel can use {testbox.nr_cpu} CPUs",
        ok=cpus >= testbox.nr_cpu,
        found=f"at most {cpus}",
        do=""
        if cpus >= testbox.nr_cpu
        else f"set CONFIG_SMP=y and CONFIG_NR_CPUS={testbox.nr_cpu} or more",
    )
    if (testbox.nr_node or 1) > 1:
        numa = not missing(["NUMA"], config)
        yield TuningFinding(
            what=f"the kernel can use {testbox.nr_node} NUMA nodes",
            ok=numa,
            found="NUMA" if numa else "it lacks NUMA",
            do="" if numa else advice(["NUMA"], load_fragments(site.kconfig)),
        )
