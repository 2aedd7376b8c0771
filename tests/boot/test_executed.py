"""Fragments and the counting of calls on the real kernel.

A kernel with hooks in its functions is a nearly full build, so the test that boots one runs where
it is kept already: `swingbot-worker build --repo ~/.cache/swingbot/demo-tree/demo.git --commit base
--kconfig vm-x86_64+trace --out DIR` keeps it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot_jobs import codec
from swingbot_jobs.contract.kconfig import load_kconfigs
from swingbot_jobs.contract.unit_job import UnitJob
from swingbot_jobs.kernel_diff import FILE, read_record, source_name
from swingbot_jobs.language.program import load_programs
from swingbot_jobs.reading.parse import parse_results
from swingbot_jobs.reading.result import ParsedRun
from swingbot_worker import kbuild
from swingbot_worker.kbuild import configure, recipe, source, toolchain
from swingbot_worker.kbuild.build_cache import BuildCache
from swingbot_worker.kbuild.lock import locked
from swingbot_worker.kbuild.make import Make
from swingbot_worker.kbuild.progress import BuildProgress
from swingbot_worker.kbuild.untrusted_reader import BuildReader
from swingbot_worker.kbuild.worktree import WorkTree
from swingbot_worker.order import Spec
from swingbot_worker.site import Site
from swingbot_worker.walls import sandbox
from tests.boot.lab import virtual_lab
from tests.contract.labs import ROOT, Lab

FUNCTIONS = ("free_unref_page_commit", "handle_mm_fault", "user_shm_lock", "no_such_function")
JOB = UnitJob(
    name="faults",
    program="page-fault",
    params={"mode": "process", "nr_task": "1", "cycles": "1", "size": str(128 << 20)},
    runs=1,
    monitors=("function-profile",),
    functions=FUNCTIONS,
)


def counting_lab(tmp_path: Path, image: Path) -> Lab:
    lab = virtual_lab(tmp_path, image)
    (lab.site.jobs / "programs" / "function-profile").symlink_to(
        ROOT / "jobs" / "programs" / "function-profile"
    )
    return lab


def booted(lab: Lab) -> tuple[ParsedRun, ParsedRun]:
    """The plain run and the one in which calls are counted."""
    outcome = lab.boot([codec.plain(JOB)])
    assert outcome["status"] == "up", outcome["reason"]
    plain, counted = parse_results(
        lab.out / "results.tar", [JOB], load_programs(ROOT / "jobs" / "programs")
    )
    return plain, counted


KCONFIGS = load_kconfigs(ROOT / "workers" / "kconfig")
# `distro` is for configurations over that of a distribution (tests/lab/test_distro_kernel.py).
BELOW = {
    "distro",
    *(fragment for name in KCONFIGS for fragment in KCONFIGS.over(name).fragments),
}


@pytest.mark.parametrize(
    "kconfig",
    sorted({*KCONFIGS, *(f"vm-x86_64+{name}" for name in {*KCONFIGS.fragments} - BELOW)}),
)
def test_the_real_kernel_takes_every_line_of_a_configuration(
    kernel_repo: tuple[Path, str], site: Site, tmp_path: Path, kconfig: str
) -> None:
    """Configured as a build is, in the work tree that all tests share.

    Nothing is compiled but kconfig itself.
    """
    repo, base = kernel_repo
    spec = Spec(repo=str(repo), commit=base, kconfig=kconfig, compiler="gcc", layout=0)
    commit, version = source.find(str(repo), base, site.cache), toolchain.compiler_version("gcc")
    tree = WorkTree(site.cache / "work" / f"linux-{commit.version}")
    log = tmp_path / "build.log"
    log.touch()  # it stays empty where the directory is configured already
    with locked(tree.lock_file, 600.0, None) as lock:
        tree.switch(commit)
        with tree.objects(spec.object_directory) as directory:
            sandbox.disowned(directory)  # we write here as ourselves, the next build behind walls
            make = Make(
                spec=spec,
                source=tree.source,
                environment=recipe.environment(tree.root, site.cache / "ccache"),
                log=log,
                jobs=1,
                ccache=toolchain.has_ccache(),
                seconds=600.0,
                lock=lock,
                progress=BuildProgress(objects=directory, ceiling=600.0, past=None, full=False),
            )
            configure.configure(
                tree,
                make,
                directory,
                configure.configuration_of(site, spec.kconfig),
                version,
                BuildReader(source=tree.source, objects=directory, sandbox=None),
            )
    assert "does not accept" not in log.read_text()


def test_a_kernel_without_the_profiler_says_what_it_needs_and_measures_as_ever(
    tmp_path: Path, base_kernel: Path
) -> None:
    plain, counted = booted(counting_lab(tmp_path, base_kernel))
    assert plain.status == "ok" and "page-fault.per_process_ops" in plain.samples
    assert (counted.status, counted.samples) == ("failed", {})
    assert counted.reason is not None and "build it with the fragment trace" in counted.reason


def test_calls_of_real_functions_are_counted(
    tmp_path: Path, kernel_repo: tuple[Path, str], site: Site
) -> None:
    repo, base = kernel_repo
    order = kbuild.order_by_hand(
        site, repo=str(repo), commit=base, kconfig="vm-x86_64+trace", compiler="gcc", layout=0
    )
    name = recipe.kept_name(order["kernel"]["build_key"], toolchain.compiler_version("gcc"))
    if BuildCache(site.cache).fetch(name, tmp_path) is None:
        pytest.skip(
            "no kernel with hooks is kept here; the first lines of this file say how to make it"
        )
    plain, counted = booted(counting_lab(tmp_path / "lab", tmp_path / "bzImage"))
    assert (plain.status, counted.status, counted.monitor) == ("ok", "ok", "function-profile")
    calls = {
        metric.removeprefix("function-profile.calls."): values[0]
        for metric, values in counted.samples.items()
        if ".calls." in metric
    }
    # a page is faulted in and freed each
    assert calls["handle_mm_fault"] >= 32768 and calls["free_unref_page_commit"] >= 32768
    assert calls["user_shm_lock"] == 0 and "no_such_function" not in calls
    assert {
        source_name(part.name)
        for part in read_record((tmp_path / FILE).read_bytes()).object("mm/page_alloc.o").code
    } >= {"free_unref_page_commit"}
