"""The mirror, on real repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from swingbot.adapters.git import Mirror
from swingbot.adapters.patch_ids import patch_ids
from swingbot.core.patchset.model import PatchFile, PatchSource, SeriesPatch
from swingbot.core.patchset.read import read_series
from swingbot.service.ports import GitError
from tests.fakelinux import FakeCommit, add_commits, make_fakelinux


@pytest.fixture
def linux(tmp_path: Path) -> tuple[Path, list[str]]:
    path = tmp_path / "linux"
    return path, make_fakelinux(
        path, [FakeCommit(speed=99), FakeCommit(kind="comment"), FakeCommit(kind="header")]
    )


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirror.git")


def series(*files: bytes) -> tuple[SeriesPatch, ...]:
    return read_series(
        [PatchSource(name="x", files=(PatchFile(name="x", data=file),)) for file in files]
    ).patches


def git(path: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(path), *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_branch_is_fetched_and_its_history_read(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    assert mirror.remote_tip(str(path), "main") == ids[-1]
    assert mirror.fetch_branch("t", str(path), "main") == ids[-1]
    assert mirror.first_parents(ids[0], ids[-1]) == ids[1:]
    assert mirror.is_ancestor(ids[0], ids[-1])
    assert not mirror.is_ancestor(ids[-1], ids[0])
    assert mirror.is_kernel(ids[-1])
    assert mirror.facts(ids[1]).subject == "1"
    assert mirror.facts(ids[1]).parents == (ids[0],)
    assert "state.json" in mirror.changed_paths(ids[1])


def test_places_are_those_between_two_commits_parents_first(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    mirror.fetch_branch("t", str(path), "main")
    assert mirror.places(ids[0], ids[-1], ids) == {ids[1]: 0, ids[2]: 1, ids[3]: 2}
    assert mirror.places(ids[1], ids[-1], [ids[0], ids[3]]) == {ids[3]: 1}
    assert mirror.places(ids[-1], ids[0], ids) == {}
    with pytest.raises(GitError):
        mirror.places("0" * 40, ids[-1], ids)


def test_a_repository_that_belongs_to_somebody_else_is_read(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    if os.geteuid() != 0:
        pytest.skip("only root can give a repository away")
    subprocess.run(["chown", "-R", "12345", path], check=True)
    assert mirror.remote_tip(str(path), "main") == ids[-1]
    assert mirror.fetch_branch("t", str(path), "main") == ids[-1]


def test_a_repository_that_is_not_there_is_described_by_its_reason(
    mirror: Mirror, tmp_path: Path
) -> None:
    with pytest.raises(GitError, match="does not appear to be a git repository"):
        mirror.remote_tip(str(tmp_path / "nowhere"), "main")


def test_prefixes_tags_and_branches_resolve(mirror: Mirror, linux: tuple[Path, list[str]]) -> None:
    path, ids = linux
    git(path, "tag", "v1", ids[1])
    mirror.fetch_branch("t", str(path), "main")
    assert mirror.resolve("t", ids[2][:10]) == ids[2]
    assert mirror.resolve("t", "tip") == ids[-1]
    assert mirror.resolve_remote("t", str(path), "v1") == ids[1]
    assert mirror.resolve_remote("t", str(path), ids[1][:12]) == ids[1]


@pytest.mark.parametrize("ref", ["nosuch", "--help", "", "a b", "deadbeef"])
def test_what_is_not_there_is_named_in_one_sentence(
    mirror: Mirror, linux: tuple[Path, list[str]], ref: str
) -> None:
    mirror.fetch_branch("t", str(linux[0]), "main")
    with pytest.raises(GitError) as refused:
        mirror.resolve("t", ref)
    assert "\n" not in str(refused.value)


def test_a_kept_commit_survives_a_rebase(mirror: Mirror, linux: tuple[Path, list[str]]) -> None:
    path, ids = linux
    mirror.fetch_branch("t", str(path), "main")
    mirror.keep(ids[-1])
    git(path, "reset", "-q", "--hard", ids[1])
    new = add_commits(path, [FakeCommit(speed=50)])
    assert mirror.fetch_branch("t", str(path), "main") == new[0]
    git(mirror.path, "gc", "-q", "--prune=now")
    assert mirror.facts(ids[-1]).commit == ids[-1]
    assert mirror.merge_base(ids[-1], new[0]) == ids[1]


def test_a_patch_gives_the_same_commit_each_time(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    mail = subprocess.run(
        ["git", "-C", str(path), "format-patch", "-1", "--stdout", ids[3]],
        check=True,
        capture_output=True,
    ).stdout
    diff = subprocess.run(
        ["git", "-C", str(path), "diff", ids[2], ids[3]], check=True, capture_output=True
    ).stdout
    mirror.fetch_branch("t", str(path), "main")
    (applied,) = mirror.apply_series(ids[2], series(mail))
    assert [applied] == mirror.apply_series(ids[2], series(mail))
    assert mirror.facts(applied).tree_hash == mirror.facts(ids[3]).tree_hash
    assert mirror.facts(applied).subject == "3"
    (bare,) = mirror.apply_series(ids[2], series(diff))
    assert mirror.facts(bare).tree_hash == mirror.facts(ids[3]).tree_hash
    assert mirror.facts(bare).author == "unknown <unknown@localhost>"


def test_a_patch_that_does_not_apply_says_which_and_where(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    diff = subprocess.run(
        ["git", "-C", str(path), "diff", ids[2], ids[3]], check=True, capture_output=True
    ).stdout
    mirror.fetch_branch("t", str(path), "main")
    with pytest.raises(GitError, match=r"patch 2/2 \(x\) does not apply on [0-9a-f]{12}: \S"):
        mirror.apply_series(ids[2], series(diff, diff))


def commit_file(path: Path, name: str, text: str, title: str) -> str:
    (path / name).write_text(text)
    git(path, "add", name)
    git(path, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", title)
    return git(path, "rev-parse", "HEAD")


def test_a_rebased_copy_has_the_patch_id_of_its_original_and_is_found_in_another_branch(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    original = commit_file(path, "mm.c", "".join(f"line {n}\n" for n in range(40)), "mm: a file")
    git(path, "checkout", "-q", "-b", "next", ids[1])
    commit_file(path, "other.c", "int x;\n", "something else")
    git(path, "-c", "user.name=B", "-c", "user.email=b@example.org", "cherry-pick", original)
    copy = git(path, "rev-parse", "HEAD")
    tip = commit_file(path, "mm.c", "changed\n", "mm: another change of the same file")
    mirror.fetch_branch("t", str(path), "main")
    mirror.fetch_branch("n", str(path), "next")
    found = mirror.patch_ids([original, copy, tip])
    assert copy != original
    assert found[copy] == found[original] != found[tip]
    assert mirror.find_patch(found[original], original, ids[1], tip) == copy
    assert mirror.find_patch(found[original], original, copy, tip) is None


def test_code_that_became_a_comment_has_another_patch_id(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    code = commit_file(path, "new.c", "// a comment\nint f(void)\n{\n}\n", "new")
    git(path, "checkout", "-q", "-b", "next", ids[-1])
    comment = commit_file(path, "new.c", "// a comment+int f(void)+{+}\n", "new")
    mirror.fetch_branch("t", str(path), "main")
    mirror.fetch_branch("n", str(path), "next")
    found = mirror.patch_ids([code, comment])
    assert found[code] != found[comment]
    diffs = [f"{git(path, 'show', '--format=', one)}\n".encode() for one in (code, comment)]
    assert patch_ids(diffs) == [found[code], found[comment]]


def test_merges_roots_and_empty_commits_have_no_patch_id(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    git(
        path,
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "nothing",
    )
    empty = git(path, "rev-parse", "HEAD")
    git(path, "checkout", "-q", "-b", "side", ids[1])
    commit_file(path, "side.c", "int y;\n", "side")
    git(path, "checkout", "-q", "main")
    git(
        path,
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "merge",
        "-q",
        "--no-ff",
        "-m",
        "merge",
        "side",
    )
    mirror.fetch_branch("t", str(path), "main")
    assert mirror.patch_ids([ids[0], empty, git(path, "rev-parse", "HEAD")]) == {}
    assert mirror.patch_ids([]) == {}


def test_a_branch_is_read_as_patches_and_a_merge_is_what_it_brings_in(
    mirror: Mirror, linux: tuple[Path, list[str]]
) -> None:
    path, ids = linux
    git(path, "checkout", "-q", "-b", "side", ids[0])
    git(path, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q",
        "--allow-empty", "-m", "nothing, with \u2028 a line separator")  # fmt: skip
    side = git(path, "rev-parse", "HEAD")
    git(path, "checkout", "-q", "main")
    git(path, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "merge", "-q",
        "--no-ff", "-m", "Merge side", "side")  # fmt: skip
    merge = git(path, "rev-parse", "HEAD")
    mirror.fetch_branch("t", str(path), "main")
    found = mirror.patches(ids[0], merge)
    assert [patch.commit for patch in found] == [*ids[1:], merge]
    assert [patch.parent for patch in found] == [*ids[:-1], ids[-1]]
    own = mirror.patch_ids(ids[1:])
    assert [patch.patch_id for patch in found] == [
        *(own[commit] for commit in ids[1:]),
        f"merge:{side}",
    ]
    assert (found[0].subject, found[0].author) == ("1", "A Developer <developer@example.org>")
    assert [patch.commit for patch in mirror.patches(ids[0], merge, most=2)] == [ids[-1], merge]
    (empty,) = mirror.patches(ids[0], side)
    assert (empty.patch_id, empty.subject) == ("", "nothing, with \u2028 a line separator")
    assert mirror.patches(merge, merge) == []
