"""Commits that stand in for another one, in a real repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from swingbot.app.bisect_run.commit_range import CommitRange, make_range
from swingbot.app.bisect_run.control_images import ControlImages
from swingbot.app.bisect_run.repository import Repository
from tests.noisy_repo import git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Eight commits: each adds a file of its own, commit 2 only documentation."""
    git(tmp_path, "init", "-q", "-b", "main")
    for i in range(8):
        (tmp_path / ("notes.md" if i == 2 else f"part{i}.c")).write_text(f"{i}\n")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", f"commit {i}")
    return tmp_path


def shas(repo: Path) -> list[str]:
    return git(repo, "rev-list", "--reverse", "main").split()


def of(repo: Path, good: int, bad: int) -> tuple[ControlImages, CommitRange]:
    repository, ids = Repository(repo), shas(repo)
    whole = make_range(ids[good], ids[bad], repository.log(ids[good], ids[bad]))
    return ControlImages(repository), whole


def test_ends_have_the_commits_beside_them_that_change_code(repo: Path) -> None:
    controls, whole = of(repo, 3, 5)
    ids = shas(repo)
    assert controls(whole, 0) == (ids[2], ids[1], ids[0])  # 3 adds code to each of them
    assert controls(whole, 2)[:2] == (ids[6], ids[7])
    assert not controls.missing(whole, 2)
    assert controls.missing(whole, 0) == (
        f"the good end {ids[3][:12]} has only 3 other images of its level"
    )


def test_an_older_commit_with_the_same_code_is_no_other_image(repo: Path) -> None:
    controls, whole = of(repo, 2, 5)
    ids = shas(repo)
    assert controls(whole, 0) == (ids[0],)  # 1 and 2 differ in notes.md alone


def test_a_commit_without_an_older_patch_has_its_parents_and_all_else(repo: Path) -> None:
    controls, whole = of(repo, 3, 6)
    ids = shas(repo)
    before = git(repo, "status", "--porcelain"), git(repo, "for-each-ref")
    found = controls(whole, 1)
    assert found and found == of(repo, 3, 6)[0](whole, 1)  # the same ids again
    for control in found:
        assert git(repo, "rev-parse", f"{control}^").strip() == ids[3]
        files = set(git(repo, "ls-tree", "--name-only", control).split())
        whole_tree = set(git(repo, "ls-tree", "--name-only", ids[4]).split())
        assert len(whole_tree - files) == 1 and files < whole_tree
        assert "notes.md" in files and "part4.c" in files
    assert before == (git(repo, "status", "--porcelain"), git(repo, "for-each-ref"))


def test_only_a_suspect_that_other_images_settle_is_told_which_are_missing(repo: Path) -> None:
    controls, whole = of(repo, 0, 7)
    told = controls.to_settle("builds of both in another layout", whole, 1)
    assert "(--layouts)" in told and "has no older commit beside it" in told
    assert controls.to_settle("more boots", whole, 1) == "more boots"


def test_a_first_commit_and_a_tip_have_none_and_it_is_said(repo: Path) -> None:
    controls, whole = of(repo, 0, 7)
    assert controls(whole, 0) == ()
    assert "has no older commit beside it" in controls.missing(whole, 0)
    assert "has no later commit beside it" in controls.missing(whole, 7)
