"""Builds of the real kernel: what the miniature tree cannot prove.

Uses the host's own build cache, so that the base build is made once for all tests and the demo.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from swingbot_jobs.contract.orders import check_order, check_outcome
from swingbot_worker import kbuild
from swingbot_worker.order import BuildOrder
from swingbot_worker.site import Site, from_environment

KernelRepo = tuple[Path, str]
# Replaced by a text of the same lines, in a file whose messages know their line numbers.
COMMENT = "Manages the free list"
FILE = "mm/page_alloc.c"


@pytest.fixture
def repo(kernel_repo: KernelRepo, tmp_path: Path) -> KernelRepo:
    """A repository of our own that borrows the objects of the prepared one."""
    bare, base = kernel_repo
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--shared", bare, tmp_path / "linux.git"], check=True
    )
    return tmp_path / "linux.git", base


def build(repo: Path, commit: str, out: Path, site: Site) -> dict[str, Any]:
    order = check_order(
        kbuild.order_by_hand(
            site, repo=str(repo), commit=commit, kconfig="vm-x86_64", compiler="gcc", layout=0
        )
    )
    return check_outcome(kbuild.build(BuildOrder.from_json(order), out, site))


def edited(repo: Path, parent: str, file: str, old: str, new: str) -> str:
    """A commit on `parent` with one text of one file replaced; needs no checkout."""
    text = _git(repo, "cat-file", "blob", f"{parent}:{file}")
    assert old in text, f"{file} of this kernel has no {old!r}; choose another text"
    blob = _git(repo, "hash-object", "-w", "--stdin", stdin=text.replace(old, new, 1)).strip()
    env = {"GIT_INDEX_FILE": str(repo / "edit.index")}
    _git(repo, "read-tree", parent, **env)
    _git(repo, "update-index", "--cacheinfo", f"100644,{blob},{file}", **env)
    tree = _git(repo, "write-tree", **env).strip()
    return _git(
        repo,
        "-c",
        "user.name=A Developer",
        "-c",
        "user.email=developer@example.org",
        "commit-tree",
        "-p",
        parent,
        "-m",
        f"edit {file}",
        tree,
    ).strip()


def _git(repo: Path, *arguments: str, stdin: str = "", **env: str) -> str:
    done = subprocess.run(
        ["git", f"--git-dir={repo}", *arguments],
        input=stdin,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        env={**os.environ, **env},
    )
    return done.stdout


def test_equal_code_gives_a_byte_identical_image_and_a_change_back_does_too(
    repo: KernelRepo, tmp_path: Path
) -> None:
    path, base = repo
    site = from_environment()
    first = build(path, base, tmp_path / "base", site)
    assert first["status"] == "built", first["reason"]
    image = first["kernel_build"]["image_sha256"]

    comment = edited(path, base, FILE, COMMENT, "Manages all free lists")
    with_comment = build(path, comment, tmp_path / "comment", site)
    assert with_comment["kernel_build"]["image_sha256"] == image
    assert with_comment["kernel_build"]["build_key"] != first["kernel_build"]["build_key"]

    code = edited(
        path,
        base,
        FILE,
        "int watermark_boost_factor __read_mostly = 15000;",
        "int watermark_boost_factor __read_mostly = 15001;",
    )
    with_code = build(path, code, tmp_path / "code", site)
    assert with_code["kernel_build"]["image_sha256"] != image
    objects = [
        json.loads((tmp_path / name / "objects.json").read_text()) for name in ("base", "code")
    ]
    assert {name for name in objects[0] if objects[0][name] != objects[1].get(name)} == {
        "mm/page_alloc.o"
    }

    # The base once more from the tree that just built something else: nothing of that may stay
    # behind.
    again = build(path, base, tmp_path / "again", _without_kept_kernels(site, tmp_path))
    assert not again["kernel_build"]["cached"]
    assert again["kernel_build"]["image_sha256"] == image


def test_one_changed_file_is_one_file_compiled_and_a_known_kernel_none(
    repo: KernelRepo, tmp_path: Path
) -> None:
    path, base = repo
    site = from_environment()
    build(path, base, tmp_path / "out", site)
    # A value that no earlier test run has built.
    value = 10_000 + time.time_ns() // 1_000_000_000 % 1_000_000
    commit = edited(path, base, FILE, "__read_mostly = 15000;", f"__read_mostly = {value};")
    built = build(path, commit, tmp_path / "out", site)
    assert built["status"] == "built" and not built["kernel_build"]["cached"]
    log = (tmp_path / "out" / "build.log").read_text()
    assert "  CC      mm/page_alloc.o" in log
    # of more than a thousand; the kept work tree may have been at another commit
    assert log.count("  CC  ") < 100
    known = build(path, commit, tmp_path / "out", site)
    assert known["kernel_build"]["cached"]


def test_a_syntax_error_in_the_real_kernel_fails_with_the_compilers_words(
    repo: KernelRepo, tmp_path: Path
) -> None:
    path, base = repo
    broken = edited(path, base, FILE, "__read_mostly = 15000;", "__read_mostly = ;")
    outcome = build(path, broken, tmp_path / "out", from_environment())
    assert outcome["status"] == "failed"
    assert (
        outcome["kernel_build"]["errors"][0].startswith("mm/page_alloc.c:")
        and "error: expected expression" in outcome["kernel_build"]["errors"][0]
    )


def test_every_line_of_our_kconfig_sticks(repo: KernelRepo, tmp_path: Path) -> None:
    path, base = repo
    outcome = build(path, base, tmp_path / "out", from_environment())
    assert outcome["status"] == "built"
    assert "does not accept" not in (tmp_path / "out" / "build.log").read_text()


def _without_kept_kernels(site: Site, tmp_path: Path) -> Site:
    """The same work trees and compiler cache, but no finished kernels."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for shared in ("work", "ccache"):
        (cache / shared).symlink_to(site.cache / shared)
    return replace(site, cache=cache)
