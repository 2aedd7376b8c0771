"""A commit as a mail that `git am` takes, byte for byte, whatever is in it; and why there is
none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swingbot.adapters.git import Mirror
from swingbot.service.ports import GitError

WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "A"), ("EMAIL", "a@b"), ("DATE", "2026-01-01T00:00:00Z"))
}


def git(repo: Path, *words: str) -> str:
    environment = {**os.environ, **WHO}
    return subprocess.run(
        ["git", "-C", str(repo), *words],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    (path / "f").write_bytes("Größe\n".encode("latin-1"))
    git(path, "add", "f")
    git(path, "commit", "-q", "-m", "root")
    (path / "f").write_bytes("größer\n\x00\xff".encode("latin-1"))
    git(path, "commit", "-q", "-a", "-m", "mm: a change\n\nLink: https://example.org/r/1@x")
    return path


def mirror_of(repo: Path, tmp_path: Path) -> Mirror:
    mirror = Mirror(tmp_path / "mirror.git")
    mirror.fetch_branch("t", str(repo), "main")
    return mirror


def test_a_patch_applied_on_the_parent_gives_the_same_tree(repo: Path, tmp_path: Path) -> None:
    commit = git(repo, "rev-parse", "HEAD")
    patch = tmp_path / "patch"
    patch.write_bytes(mirror_of(repo, tmp_path).patch(commit))
    assert patch.read_bytes().startswith(f"From {commit} ".encode())
    git(repo, "checkout", "-q", "--detach", "HEAD^")
    git(repo, "am", "-q", str(patch))
    assert git(repo, "rev-parse", "HEAD^{tree}") == git(repo, "rev-parse", f"{commit}^{{tree}}")
    assert git(repo, "log", "-1", "--format=%B") == git(repo, "log", "-1", "--format=%B", commit)


def test_the_same_commit_gives_the_same_bytes(repo: Path, tmp_path: Path) -> None:
    mirror, commit = mirror_of(repo, tmp_path), git(repo, "rev-parse", "HEAD")
    assert mirror.patch(commit) == mirror.patch(commit)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("root", "it is the root commit"),
        ("merge", "it is a merge"),
        ("empty", "it changes nothing"),
    ],
)
def test_a_commit_without_a_patch_says_why(repo: Path, tmp_path: Path, how: str, why: str) -> None:
    if how == "merge":
        git(repo, "checkout", "-q", "-b", "side", "HEAD^")
        git(repo, "commit", "-q", "--allow-empty", "-m", "side")
        git(repo, "checkout", "-q", "main")
        git(repo, "merge", "-q", "--no-ff", "-m", "merge", "side")
    elif how == "empty":
        git(repo, "commit", "-q", "--allow-empty", "-m", "nothing")
    commit = (
        git(repo, "rev-list", "--max-parents=0", "HEAD")
        if how == "root"
        else git(repo, "rev-parse", "HEAD")
    )
    with pytest.raises(GitError, match=why):
        mirror_of(repo, tmp_path).patch(commit)
