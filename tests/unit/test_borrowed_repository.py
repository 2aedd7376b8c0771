"""Repositories of others are read without their configuration: by effect, with real git."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from swingbot.adapters.git import Mirror
from swingbot.adapters.list_archive import find_posted
from swingbot.service.ports import GitError
from swingbot_jobs.borrowed_repository import NotARepository, borrow, borrowed, git_directories
from swingbot_worker import InfraError
from swingbot_worker.engine import lkp
from swingbot_worker.kbuild import source
from tests.attack.hostile_repository import git, hostile_repository, obeyed
from tests.fakelinux import make_fakelinux


def asked(git_dir: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", f"--git-dir={git_dir}", *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_git_itself_obeys_the_configuration(tmp_path: Path) -> None:
    """Without this the other tests prove nothing."""
    mark = tmp_path / "mark"
    tip = hostile_repository(tmp_path / "linux", mark)
    assert obeyed(tmp_path / "linux", mark)
    subprocess.run(["git", "-C", str(tmp_path / "linux"), "log", tip], capture_output=True)
    assert mark.exists()
    mark.unlink()
    subprocess.run(
        ["git", "-C", str(tmp_path / "linux"), "cat-file", "blob", f"{tip}:Kconfig"],
        capture_output=True,
    )
    assert mark.exists()


@pytest.mark.parametrize("missing", ["", "Kconfig", "Makefile"])
def test_a_worker_reads_a_commit_without_it(tmp_path: Path, missing: str) -> None:
    mark, linux = tmp_path / "mark", tmp_path / "linux"
    tip = hostile_repository(linux, mark, missing=missing)
    assert source.resolve(str(linux), "main") == tip
    assert source.resolve(f"file://{linux}/.git", tip[:12]) == tip
    if missing:
        with pytest.raises(source.NotAKernel, match="no kernel Makefile and Kconfig"):
            source.find(str(linux), tip, tmp_path / "cache")
    else:
        found = source.find(str(linux), tip, tmp_path / "cache")
        assert source.total_bytes(found) > 0
        assert found == source.find(str(linux), tip, tmp_path / "cache")
    assert lkp._commit(linux) == tip
    assert not mark.exists()


@pytest.mark.parametrize("missing", ["", "Kconfig"])
def test_the_mirror_fetches_without_it(tmp_path: Path, missing: str) -> None:
    mark, linux = tmp_path / "mark", tmp_path / "linux"
    tip = hostile_repository(linux, mark, missing=missing)
    mirror = Mirror(tmp_path / "mirror.git")
    assert mirror.remote_tip(str(linux), "main") == tip
    if missing:
        with pytest.raises(GitError, match="branch 'main' of"):
            mirror.fetch_branch("t", str(linux), "main")
    else:
        assert mirror.fetch_branch("t", str(linux), "main") == tip
        assert mirror.resolve_remote("t", str(linux), tip[:10]) == tip
    assert not mark.exists()


def test_an_archive_of_mails_is_searched_without_it(tmp_path: Path) -> None:
    mark, linux = tmp_path / "mark", tmp_path / "linux"
    hostile_repository(linux, mark)
    subject = git(linux, "-c", "log.showSignature=false", "log", "-1", "--format=%s")
    mark.unlink(missing_ok=True)
    assert find_posted(linux, "", subject, "nobody <no@example.org>") is None
    assert not mark.exists()


def test_a_remote_is_asked_without_the_configuration_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark, linux = tmp_path / "mark", tmp_path / "linux"
    hostile_repository(linux, mark)
    monkeypatch.chdir(linux)
    with pytest.raises(InfraError, match="Cannot find tag or branch"):
        source.resolve("ssh://localhost:1/linux.git", "v1")
    assert not mark.exists()


def test_replaced_commits_are_not_believed(tmp_path: Path) -> None:
    linux = tmp_path / "linux"
    ids = make_fakelinux(linux, 2)
    git(linux, "replace", ids[-1], ids[0])
    with borrowed(linux) as git_dir:
        assert asked(git_dir, "rev-parse", f"{ids[-1]}^") == ids[-2]
    assert git(linux, "rev-parse", f"{ids[-1]}^@") != ids[-2]


def test_work_trees_bare_and_shallow_repositories_and_strange_paths(tmp_path: Path) -> None:
    linux = tmp_path / "a\nline"
    ids = make_fakelinux(linux, 3)
    git(linux, "worktree", "add", "--detach", str(tmp_path / "tree"), ids[1])
    subprocess.run(
        ["git", "clone", "-q", "--bare", "--depth=1", f"file://{linux}", tmp_path / "bare.git"],
        check=True,
    )
    for path, head in ((linux, ids[-1]), (tmp_path / "tree", ids[1]), (tmp_path / "bare", ids[-1])):
        with borrowed(path) as git_dir:
            assert asked(git_dir, "rev-parse", "HEAD") == head
            assert asked(git_dir, "cat-file", "-t", "refs/heads/main^{tree}") == "tree"
    with borrowed(tmp_path / "bare.git") as git_dir:
        assert asked(git_dir, "rev-list", "--count", "HEAD") == "1"


def test_a_later_commit_is_seen_and_nothing_is_written_there(tmp_path: Path) -> None:
    linux, place = tmp_path / "linux", tmp_path / "place"
    ids = make_fakelinux(linux, 2)
    before = sorted(linux.rglob("*"))
    borrow(linux, place)
    asked(place, "fetch", "-q", str(linux), "main")
    assert sorted(linux.rglob("*")) == before
    git(linux, "checkout", "-q", "--detach", ids[0])
    inode = (place / "config").stat().st_ino
    borrow(linux, place)
    assert asked(place, "rev-parse", "HEAD") == ids[0]
    assert (place / "config").stat().st_ino == inode
    assert [entry.name for entry in place.iterdir() if entry.name.count(".")] == []


@pytest.mark.parametrize("head", ["pipe", "long", "elsewhere", "none"])
def test_what_is_not_a_repository_is_refused(tmp_path: Path, head: str) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "refs").mkdir()
    if head == "pipe":
        os.mkfifo(tmp_path / "HEAD")
    elif head == "long":
        with (tmp_path / "HEAD").open("wb") as file:
            file.truncate(1 << 40)
    elif head == "elsewhere":
        (tmp_path / "HEAD").write_text("ref: ../../etc/passwd\n")
    begin = time.monotonic()
    if head in ("pipe", "none"):
        with pytest.raises(NotARepository, match="does not appear to be a git repository"):
            git_directories(tmp_path)
    else:
        borrow(tmp_path, tmp_path / "place")
        assert (tmp_path / "place" / "HEAD").read_text() == "ref: refs/heads/none\n"
    assert time.monotonic() - begin < 60
