"""`--dirty`: uncommitted changes become the commit that `git commit --all` would make, and the
checkout stays as it is, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from swingbot.app import here, here_packages
from swingbot.app.cli import main
from swingbot.app.remote.checkout import Checkout
from swingbot.service.ports import RequestError
from tests.fakes.dirty_checkout import HOOKS, a_dirty_checkout, introduce, left
from tests.patch_series import ENVIRONMENT, git

COMMIT_ALL = ("-c", "core.hooksPath=/dev/null", "commit", "--all", "-qm", "x")


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "clone"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    introduce(path)
    git(path, "commit", "-q", "--allow-empty", "-m", "base")
    return path


def made_of(path: Path) -> tuple[str, list[str]]:
    """The commit, and what was said; nothing else of the checkout has changed."""
    said: list[str] = []
    before, head = left(path), git(path, "rev-parse", "HEAD").decode().strip()
    made = Checkout(path, said.append).with_changes(head)
    assert left(path) == before
    assert git(path, "rev-parse", f"{made}^").decode().strip() == head
    return made, said


def tree_of(path: Path, commit: str) -> bytes:
    return git(path, "ls-tree", "-r", commit)


def committed(path: Path, place: Path) -> bytes:
    """The tree that git makes of the same changes, in a copy of the checkout."""
    shutil.copytree(path, place, symlinks=True)
    git(place, *COMMIT_ALL)
    return tree_of(place, "HEAD")


def test_changes_of_all_kinds_become_the_commit_that_git_would_make(
    clone: Path, tmp_path: Path
) -> None:
    a_dirty_checkout(clone)  # with a stash
    git(clone, "config", "status.showStash", "true")
    made, said = made_of(clone)
    assert tree_of(clone, made) == committed(clone, tmp_path / "copy")
    assert b"untracked" not in tree_of(clone, made) and b"later" in tree_of(clone, made)
    assert said == ["untracked files, such as untracked, are left out; `git add` tracks them"]
    assert made_of(clone)[0] == made, "the same changes are the same commit"
    assert not (clone / "hooked").exists(), f"none of {HOOKS} ran"
    inside = clone / "folder"
    inside.mkdir()
    around = Checkout.around(inside)
    assert around is not None and around.with_changes(made) != made


@pytest.mark.parametrize("which", ["autocrlf", "filter", "split index"])
def test_contents_are_what_git_add_makes_of_them(which: str, clone: Path, tmp_path: Path) -> None:
    if which == "filter":
        git(clone, "config", "filter.upper.clean", "tr a-z A-Z")
        (clone / ".gitattributes").write_text("*.c filter=upper\n")
    git(clone, "config", "core.autocrlf", "true" if which == "autocrlf" else "false")
    git(clone, "config", "core.splitIndex", "true" if which == "split index" else "false")
    (clone / "a.c").write_bytes(b"int x;\n")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "a.c")
    (clone / "a.c").write_bytes(b"int y;\r\nint z;\r\n")
    made, _ = made_of(clone)
    assert tree_of(clone, made) == committed(clone, tmp_path / "copy")
    content = {
        "autocrlf": b"int y;\nint z;\n",
        "filter": b"INT Y;\r\nINT Z;\r\n",
        "split index": b"int y;\r\nint z;\r\n",
    }
    assert git(clone, "show", f"{made}:a.c") == content[which]


def test_a_submodule_goes_along_unless_it_has_changes(clone: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q", "-b", "main")
    introduce(inner)
    (inner / "file").write_text("x\n")
    git(inner, "add", "file")
    git(inner, "commit", "-qm", "inner")
    allowed = ("-c", "protocol.file.allow=always")
    git(clone, *allowed, "submodule", "--quiet", "add", str(inner), "sub dir")
    (clone / "a").write_text("a\n")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "with a submodule")
    (clone / "a").write_text("b\n")
    made, _ = made_of(clone)
    assert b"160000 commit" in tree_of(clone, made)
    (clone / "sub dir" / "file").write_text("y\n")
    before = left(clone)
    with pytest.raises(RequestError, match="submodule sub dir has changes"):
        made_of(clone)
    assert left(clone) == before


def test_what_cannot_be_committed_is_refused_and_left_as_it_is(clone: Path) -> None:
    for branch, text in (("one", "x\n"), ("two", "y\n")):
        git(clone, "checkout", "-q", "-b", branch, "main")
        (clone / "a file").write_text(text)
        git(clone, "add", ".")
        git(clone, "commit", "-qm", branch)
    with pytest.raises(subprocess.CalledProcessError):
        git(clone, "merge", "-q", "one")
    before = left(clone)
    with pytest.raises(RequestError, match="conflicts, such as in a file: resolve them"):
        Checkout(clone).with_changes("HEAD")
    assert left(clone) == before
    git(clone, "reset", "-q", "--hard")
    (clone / ".git" / "index").unlink()
    with pytest.raises(RequestError, match="has no index: make one with `git reset`"):
        Checkout(clone).with_changes("HEAD")


def test_here_measures_uncommitted_changes_if_it_is_told_to(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the start of the service."""
    a_dirty_checkout(clone)
    (clone / "\x1b[2Junseen").touch()
    monkeypatch.setattr(here_packages, "missing_packages", list)
    monkeypatch.setattr(here, "_START_SECONDS", 0.0)
    monkeypatch.chdir(clone)
    before, said = left(clone), {}
    head = git(clone, "rev-parse", "--short=12", "HEAD").decode().strip()
    for words in ("here HEAD..HEAD", "here HEAD..HEAD --dirty"):
        done = CliRunner().invoke(main, words.split(), env={"XDG_STATE_HOME": str(tmp_path)})
        assert "the service did not start" in done.output
        said[words] = done.output.splitlines()[:3]
    assert said["here HEAD..HEAD"] == [
        "uncommitted changes, such as added, are measured with --dirty only",
        f"HEAD: {head} all kinds",
        f"HEAD: {head} all kinds",
    ]
    left_out, first, last = said["here HEAD..HEAD --dirty"]
    assert left_out.startswith("untracked files, such as ?[2Junseen")
    assert first == f"HEAD: {head} all kinds"
    assert last.startswith("HEAD+changes: ") and last.endswith(f" uncommitted changes on {head}")
    assert git(clone, "show", f"{last.split()[1]}:both") == b"bb\n"
    assert left(clone) == before


@pytest.mark.parametrize(
    ("own", "author"),
    [
        ({}, "swingbot <swingbot@invalid>"),
        ({"author.name": "Ada", "author.email": "a@b"}, "Ada <a@b>"),
    ],
)
def test_changes_of_who_gave_git_no_name_are_committed(
    clone: Path, own: dict[str, str], author: str
) -> None:
    (clone / "file").write_text("old\n")
    git(clone, "add", "file")
    git(clone, "commit", "-qm", "file")
    (clone / "file").write_text("new\n")
    for name in ("user.name", "user.email"):
        git(clone, "config", "--unset", name)
    for name, value in (own | {"user.useConfigOnly": "true"}).items():
        git(clone, "config", name, value)
    made, _ = made_of(clone)
    who = git(clone, "show", "-s", "--format=%an <%ae>, %cn <%ce>", made).decode().strip()
    assert who == f"{author}, swingbot <swingbot@invalid>"
