"""Debian's kernels with the configurations for virtual machines, and fragment mm: what each release
no longer has, and the suite mm-quick on vm-mm.

A build from nothing takes 6 to 12 minutes of two processors; `.ci/lab` installs the packages.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from swingbot_jobs import codec
from swingbot_jobs.language.expand import expand
from swingbot_jobs.language.job_files import read_suite
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.testbox.file import load_all
from swingbot_worker import kbuild
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site
from tests.contract.labs import ROOT, Lab
from tests.demo.tree import SOURCE_REF, kept_import
from tests.lab.debs import kernel_source
from tests.lab.test_compilers import a_build

pytestmark = pytest.mark.timeout(10_800)

# Lines that a release does not accept, each with its file.
NOT_ACCEPTED = {
    "6.1": [],
    "6.12": [],
    "7": [
        ("vm-x86_64.config", "CONFIG_X86_5LEVEL=y (it has no such option)"),
        ("vm-x86_64.config", "CONFIG_PROC_SYSCTL=y (it has no such option)"),
        ("mm.config", "CONFIG_READ_ONLY_THP_FOR_FS=y (it has no such option)"),
    ],
}


def not_accepted(out: Path) -> list[tuple[str, str]]:
    log = (out / "build.log").read_text()
    return re.findall(r"(\S+): this kernel does not accept: (.*)", log)


@pytest.mark.parametrize("release", NOT_ACCEPTED)
def test_what_a_release_no_longer_has_is_a_remark(site: Site, tmp_path: Path, release: str) -> None:
    """Nothing is compiled but kconfig itself."""
    order = kbuild.order_by_hand(
        site,
        repo=str(kept_import(kernel_source(release), site.cache, lambda line: None)),
        commit=SOURCE_REF,
        kconfig="vm-x86_64+mm+trace",
        compiler="gcc",
        layout=0,
    )
    said: list[str] = []
    config = kbuild.configured(BuildOrder.from_json(order), tmp_path, site, said.append)
    assert not_accepted(tmp_path) == NOT_ACCEPTED[release]
    assert {
        "CONFIG_SWAP=y",
        "CONFIG_SYSCTL=y",
        "CONFIG_ZRAM=y",
        "CONFIG_NUMA_BALANCING=y",
        "CONFIG_FUNCTION_PROFILER=y",
    } <= set(config.splitlines())


@pytest.mark.parametrize("release", NOT_ACCEPTED)
def test_a_kernel_for_mm_runs_the_suite_of_its_testbox(
    site: Site, tmp_path: Path, release: str
) -> None:
    out = tmp_path / "kernel"
    built = a_build(site, release, "gcc", 0, out, kconfig="vm-x86_64+mm")
    assert built["status"] == "built", built["reason"]
    assert not_accepted(out) == NOT_ACCEPTED[release]
    testbox = load_all(ROOT / "workers" / "testboxes")["vm-mm"]
    programs = load_programs(ROOT / "jobs" / "programs")
    jobs = [
        job
        for name in read_suite("mm-quick", ROOT / "jobs")
        for job in expand((ROOT / "jobs" / name).read_text(), name, testbox, programs)
    ]
    mine = Site(
        cache=site.cache,
        workers=ROOT / "workers",
        jobs=ROOT / "jobs",
        benchmarks=None,
        make_jobs=1,
    )
    lab = Lab(site=mine, testbox="vm-mm", image=out / "bzImage", out=tmp_path / "boot")
    booted = lab.boot([codec.plain(job) for job in jobs])
    assert (booted["status"], booted["reason"]) == ("up", None)
    assert booted["facts"]["kernel_release"].startswith(f"{release}.")
    runs = parse_results(lab.out / "results.tar", jobs, programs)
    counted = [run for run in runs if run.status != "warmup"]
    # a run is valid only if it scanned the pages that its job demands
    assert {(run.status, run.reason) for run in counted} == {("ok", None)}
    assert {run.unit_job for run in counted} == {job.name for job in jobs}
