"""What one commit did to the real kernel: our table against the kernel tree's own script,
and the functions that differ.

Two incremental builds in the work tree that all tests share; nothing is booted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from swingbot_jobs.kernel_diff import (
    FILE,
    KernelRecord,
    bloat,
    bloat_text,
    code_change,
    of_classes,
    read_record,
    symbol_table,
)
from swingbot_worker import kbuild
from swingbot_worker.digest import sha256
from swingbot_worker.kbuild.elf import read_elf
from swingbot_worker.kbuild.objects import sizes
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site, from_environment

OBJECT = "mm/page_alloc.o"
# A change of one function's code, and lines before it, so that every __LINE__ of the file moves and
# every later function too.
OLD, NEW = "free_high = (pcp->free_factor && order && order <=", "free_high = (order && order <="
MORE_LINES = "/*\n * Three lines\n */\n"


@dataclass(frozen=True)
class Built:
    record: KernelRecord
    vmlinux: Path
    object: Path


@pytest.fixture(scope="module")
def kernels(
    kernel_repo: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Built, Built, Path]:
    """Base, head, and the script of that kernel."""
    place = tmp_path_factory.mktemp("kernels")
    bare, base = kernel_repo
    repo = place / "linux.git"
    subprocess.run(["git", "clone", "-q", "--bare", "--shared", bare, repo], check=True)
    site = _without_kept_kernels(from_environment(), place)
    script = place / "bloat-o-meter"
    script.write_text(git(repo, "cat-file", "blob", f"{base}:scripts/bloat-o-meter"))
    return (
        a_build(repo, base, place / "base", site),
        a_build(repo, edited(repo, base), place / "head", site),
        script,
    )


def a_build(repo: Path, commit: str, out: Path, site: Site) -> Built:
    """Build, and take vmlinux and one object out of the work tree before the next build has it."""
    order = kbuild.order_by_hand(
        site, repo=str(repo), commit=commit, kconfig="vm-x86_64", compiler="gcc", layout=0
    )
    outcome = kbuild.build(BuildOrder.from_json(order), out, site)
    assert outcome["status"] == "built" and not outcome["kernel_build"]["cached"], outcome["reason"]
    record = read_record((out / FILE).read_bytes())
    assert outcome["files"][FILE]["sha256"] == sha256(out / FILE)
    vmlinux = max(
        (site.cache / "work").glob("linux-*/src/o-vm-x86_64-gcc-0/vmlinux"),
        key=lambda path: path.stat().st_mtime,
    )
    built = Built(record, out / "vmlinux", out / "page_alloc.o")
    shutil.copyfile(vmlinux, built.vmlinux)
    shutil.copyfile(vmlinux.parent / OBJECT, built.object)
    assert sha256(built.object) == record.sha256(OBJECT), (
        "another build used the work tree in between; run this again"
    )
    return built


def edited(repo: Path, parent: str) -> str:
    file = "mm/page_alloc.c"
    text = git(repo, "cat-file", "blob", f"{parent}:{file}")
    assert OLD in text
    blob = git(
        repo, "hash-object", "-w", "--stdin", stdin=MORE_LINES + text.replace(OLD, NEW, 1)
    ).strip()
    index = {"GIT_INDEX_FILE": str(repo / "edit.index")}
    git(repo, "read-tree", parent, **index)
    git(repo, "update-index", "--cacheinfo", f"100644,{blob},{file}", **index)
    tree = git(repo, "write-tree", **index).strip()
    return git(
        repo,
        "-c",
        "user.name=A Developer",
        "-c",
        "user.email=developer@example.org",
        "commit-tree",
        "-p",
        parent,
        "-m",
        "edit",
        tree,
    ).strip()


def git(repo: Path, *arguments: str, stdin: str = "", **env: str) -> str:
    done = subprocess.run(
        ["git", f"--git-dir={repo}", *arguments],
        input=stdin,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, **env},
    )
    return done.stdout


def _without_kept_kernels(site: Site, place: Path) -> Site:
    """The same work trees and compiler cache, but no finished kernels: what is compared must lie in
    the work tree.
    """
    cache = place / "cache"
    cache.mkdir()
    for shared in ("work", "ccache"):
        (site.cache / shared).mkdir(parents=True, exist_ok=True)
        (cache / shared).symlink_to(site.cache / shared)
    return replace(site, cache=cache)


@pytest.mark.parametrize(
    ("option", "classes", "title"),
    [(None, "tdbr", "Function"), ("-t", "t", "Function"), ("-d", "dbr", "Data")],
)
@pytest.mark.parametrize("what", ["vmlinux", "object"])
def test_our_table_is_that_of_the_kernels_own_script(
    kernels: tuple[Built, Built, Path], what: str, option: str | None, classes: str, title: str
) -> None:
    base, head, script = kernels
    files = [getattr(side, what) for side in (base, head)]
    theirs = subprocess.run(
        [sys.executable, script, *([option] if option else []), *files],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    ours = [of_classes(symbol_table(read_elf(file).letters()), classes) for file in files]
    assert bloat_text(bloat(*ours), title) == theirs
    assert ("free_unref_page_commit" in theirs) == (option != "-d")
    if what == "vmlinux":  # and what the master computes later, without the files
        assert (
            bloat_text(
                bloat(
                    of_classes(base.record.symbols, classes),
                    of_classes(head.record.symbols, classes),
                ),
                title,
            )
            == theirs
        )


def test_the_one_function_is_found_although_every_line_and_address_moved(
    kernels: tuple[Built, Built, Path],
) -> None:
    base, head, _ = kernels
    change = code_change(base.record, head.record)
    assert [(one.object, one.name, one.what) for one in change.functions] == [
        (OBJECT, "free_unref_page_commit", ("code",))
    ]
    assert not change.data and [one.object for one in change.objects] == [OBJECT]
    assert code_change(base.record, base.record).nothing


def test_sizes_are_those_of_size_and_hide_the_change(kernels: tuple[Built, Built, Path]) -> None:
    base, head, _ = kernels
    assert dict(base.record.sizes) == sizes(base.vmlinux) and base.record.object(
        OBJECT
    ).sizes == sizes(base.object)
    assert base.record.sizes == head.record.sizes  # what the note beside every size of vmlinux says
    assert of_classes(base.record.symbols) != of_classes(head.record.symbols)


def test_the_record_knows_the_linked_objects_and_the_flags(
    kernels: tuple[Built, Built, Path],
) -> None:
    record = kernels[0].record
    paths = record.paths()
    assert {
        "init/main.o",
        "mm/slub.o",
        "arch/x86/kernel/head_64.o",
        "arch/x86/entry/entry_64.o",
        "lib/string.o",
    } <= paths
    assert not any(path.startswith(("scripts/", "tools/", "arch/x86/boot/")) for path in paths)
    assert "-O2" in record.flags and not any("/" in flag for flag in record.flags)
    # All of the image's functions are there, but for the handful that the link makes itself.
    named = {part.name for path in paths for part in record.object(path).code}
    missing = [
        name
        for name in record.symbols["t"]
        if name not in named and name.split(".")[0] not in {one.split(".")[0] for one in named}
    ]
    assert len(missing) < len(record.symbols["t"]) / 100, missing[:20]
