"""A commit taken away from a tip, in real repositories."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from swingbot.adapters.git import Mirror
from swingbot.service.ports import CannotRevert

_WHO = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
}
LINES = "".join(f"line {n}\n" for n in range(30))


def git(path: Path, *words: str) -> str:
    return subprocess.run(
        ["git", "-C", str(path), *words],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, **_WHO},
    ).stdout.strip()


def commit(path: Path, files: Mapping[str, str | None], subject: str = "a change") -> str:
    for name, text in files.items():
        if text is None:
            (path / name).unlink()
        else:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
    git(path, "add", "-A")
    git(path, "commit", "-q", "--allow-empty", "-m", subject)
    return git(path, "rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    commit(path, {"mm/a.c": LINES, "mm/b.c": "b\n"}, "base")
    return path


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(tmp_path / "mirror.git")


def fetched(mirror: Mirror, repo: Path) -> str:
    return mirror.fetch_branch("t", str(repo), "main")


def test_a_reverted_commit_leaves_what_came_after_it(mirror: Mirror, repo: Path) -> None:
    culprit = commit(
        repo, {"mm/a.c": LINES.replace("line 3\n", "slow 3\n"), "mm/new.c": "new\n"}, "mm: be slow"
    )
    commit(
        repo,
        {
            "mm/a.c": LINES.replace("line 3\n", "slow 3\n").replace("line 25\n", "later 25\n"),
            "mm/b.c": "b2\n",
        },
    )
    tip = fetched(mirror, repo)
    without = mirror.without(tip, culprit)
    assert mirror.facts(without).parents == (tip,)
    assert mirror.facts(without).subject == 'Revert "mm: be slow"'
    shown = git(mirror.path, "show", f"{without}:mm/a.c")
    assert shown == LINES.replace("line 25\n", "later 25\n").strip()
    assert set(mirror.paths_between(tip, without)) == {"mm/a.c", "mm/new.c"}
    assert git(mirror.path, "rev-parse", f"refs/swingbot/keep/{without}") == without


def test_reverting_twice_gives_the_same_commit(mirror: Mirror, repo: Path) -> None:
    culprit = commit(repo, {"mm/b.c": "slow\n"})
    commit(repo, {"mm/c.c": "c\n"})
    tip = fetched(mirror, repo)
    assert mirror.without(tip, culprit) == mirror.without(tip, culprit)


def test_a_reverted_commit_survives_a_clean_up_of_the_mirror(mirror: Mirror, repo: Path) -> None:
    culprit = commit(repo, {"mm/b.c": "slow\n"})
    commit(repo, {"mm/c.c": "c\n"})
    without = mirror.without(fetched(mirror, repo), culprit)
    git(mirror.path, "gc", "-q", "--prune=now")
    assert git(mirror.path, "cat-file", "-t", without) == "commit"


def test_a_conflict_names_its_files(mirror: Mirror, repo: Path) -> None:
    culprit = commit(repo, {"mm/a.c": LINES.replace("line 3\n", "slow 3\n"), "mm/b.c": "slow\n"})
    commit(repo, {"mm/a.c": LINES.replace("line 3\n", "slower 3\n"), "mm/b.c": None})
    tip = fetched(mirror, repo)
    with pytest.raises(CannotRevert, match=r"^conflict in mm/a\.c, mm/b\.c$"):
        mirror.without(tip, culprit)


def test_a_conflict_in_a_file_with_a_wild_name_stays_one_line(mirror: Mirror, repo: Path) -> None:
    name = "mm/a\nb\x1b[31m.c"
    culprit = commit(repo, {name: "one\n"})
    commit(repo, {name: "two\n"})
    tip = fetched(mirror, repo)
    with pytest.raises(CannotRevert) as refused:
        mirror.without(tip, culprit)
    assert str(refused.value) == "conflict in mm/a\\nb\\x1b[31m.c"


def test_a_merge_and_the_first_commit_cannot_be_reverted(mirror: Mirror, repo: Path) -> None:
    root = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "-q", "-b", "side")
    commit(repo, {"mm/side.c": "side\n"})
    git(repo, "checkout", "-q", "main")
    commit(repo, {"mm/b.c": "b2\n"})
    git(repo, "merge", "-q", "--no-ff", "-m", "merge side", "side")
    merge = git(repo, "rev-parse", "HEAD")
    commit(repo, {"mm/c.c": "c\n"})
    tip = fetched(mirror, repo)
    with pytest.raises(CannotRevert, match="is a merge"):
        mirror.without(tip, merge)
    with pytest.raises(CannotRevert, match="first of its history"):
        mirror.without(tip, root)


def test_what_is_undone_already_cannot_be_reverted(mirror: Mirror, repo: Path) -> None:
    culprit = commit(repo, {"mm/b.c": "slow\n"})
    commit(repo, {"mm/b.c": "b\n"})
    tip = fetched(mirror, repo)
    with pytest.raises(CannotRevert, match="does not contain the change any more"):
        mirror.without(tip, culprit)


def test_messages_from_a_commit_on_are_read_whole_and_in_order(mirror: Mirror, repo: Path) -> None:
    one = commit(repo, {"mm/b.c": "1\n"}, "one\n\nbody\n\nLink: https://lore.kernel.org/r/x-1-y@z")
    two = commit(repo, {"mm/b.c": "2\n"}, "two")
    three = commit(repo, {"mm/b.c": "3\n"}, "three")
    tip = fetched(mirror, repo)
    found = mirror.messages_from(one, tip, 10)
    assert [sha for sha, _ in found] == [one, two, three]
    assert found[0][1].rstrip() == "one\n\nbody\n\nLink: https://lore.kernel.org/r/x-1-y@z"
    assert [sha for sha, _ in mirror.messages_from(one, tip, 1)] == [one, two]
    assert [sha for sha, _ in mirror.messages_from(three, tip, 5)] == [three]
