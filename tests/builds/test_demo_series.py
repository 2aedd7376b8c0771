"""The series of the demo: every seed gives 20 commits that apply, with one culprit in a place of
its own."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from tests.amount import ALL
from tests.demo import process, tree

SEEDS = range(1, 51)
PLANTS = ("large", "medium", "small", "init", "slub", "memory", "swap", "reclaim")
CACHE = Path(
    os.environ.get("SWINGBOT_PATHS_CACHE")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "swingbot"
)


def quiet(line: str) -> None:
    """No progress in a test."""


@pytest.fixture(scope="session")
def mm() -> Path:
    """A repository of what our patches touch, from the real source. Kept: unpacking takes ten
    seconds."""
    if not tree.TARBALL.exists():
        pytest.skip(f"{tree.TARBALL} is not there: install linux-source-6.1")
    return tree.kept_import(tree.TARBALL, CACHE, quiet, only=tree.TOUCHED)


@pytest.fixture
def repo(mm: Path, tmp_path: Path) -> Path:
    target = tmp_path / "linux.git"
    process.run(["git", "clone", "--quiet", "--bare", mm, target], env=process.git_environment())
    return target


def stacked(repo: Path, patches: list[str]) -> str:
    """The tree that these patches give in this order, in one go."""
    with tree.with_index(repo, tree.SOURCE_REF) as git:
        git.run(
            "apply", "--cached", "-", stdin=b"".join(tree.patch_text(name)[1] for name in patches)
        )
        return git.run("write-tree")


def patches_of(recipe: tree.Recipe) -> list[str]:
    given = tree.catalogue()["plants"][recipe.plant]["given"]
    return [given, *(slot.patch for slot in tree.plan(recipe)[0])]


def test_every_seed_gives_patches_that_apply_in_their_order(mm: Path) -> None:
    with tree.with_index(mm, tree.SOURCE_REF) as git:
        for seed in SEEDS if ALL else SEEDS[::5]:
            patches = patches_of(tree.Recipe(seed=seed, plant=tree.plant_of_seed(seed)))
            assert git.attempt(
                "apply",
                "--cached",
                "--check",
                "-",
                stdin=b"".join(tree.patch_text(name)[1] for name in patches),
            ) == (0, "")


@pytest.mark.parametrize("plant", [*PLANTS, "none"])
def test_the_order_of_the_patches_does_not_change_what_they_make(mm: Path, plant: str) -> None:
    given, *rest = patches_of(tree.Recipe(seed=1, plant=plant, count=40))
    assert stacked(mm, [given, *rest]) == stacked(mm, [given, *reversed(rest)])


def test_broken_commits_apply_wherever_they_are_asked_for(mm: Path) -> None:
    for place in (1, 7, 17):
        slots, _ = tree.plan(
            tree.Recipe(seed=3, plant="large", unbuildable=place, hanging=place + 2, header=5)
        )
        assert [slots[place - 1].role, slots[place].role, slots[place + 1].role, slots[4].role] == [
            "unbuildable",
            "mended",
            "hanging",
            "header",
        ]
        stacked(mm, ["given-lru-one", *(slot.patch for slot in slots)])


def test_a_series_has_one_culprit_two_look_alikes_one_gain_and_one_that_changes_no_image() -> None:
    for seed in SEEDS:
        for plant in PLANTS:
            roles = [slot.role for slot in tree.plan(tree.Recipe(seed=seed, plant=plant))[0]]
            counts = {role: roles.count(role) for role in roles}
            assert counts == {
                "culprit": 1,
                "look-alike": 2,
                "improvement": 1,
                "same-image": 1,
                "harmless": 15,
            }


def test_without_a_plant_nothing_is_a_culprit_and_there_are_as_many_commits() -> None:
    roles = [slot.role for slot in tree.plan(tree.Recipe(seed=4, plant="none"))[0]]
    assert "culprit" not in roles and len(roles) == 20


def test_the_place_of_the_culprit_follows_the_seed_and_is_never_the_first() -> None:
    places = {
        [slot.role for slot in tree.plan(tree.Recipe(seed=seed, plant="large"))[0]].index("culprit")
        + 1
        for seed in SEEDS
    }
    assert min(places) >= 2 and len(places) >= 15


def test_the_places_of_the_others_follow_the_seed_too() -> None:
    for role in ("improvement", "same-image"):
        places = {
            [slot.role for slot in tree.plan(tree.Recipe(seed=seed, plant="large"))[0]].index(role)
            for seed in SEEDS
        }
        assert len(places) >= 10


def test_three_sizes_of_plant_take_turns() -> None:
    assert {tree.plant_of_seed(seed) for seed in (1, 2, 3)} == {"small", "medium", "large"}


@pytest.mark.parametrize("count", [12, 30])
def test_a_series_is_as_long_as_asked(count: int) -> None:
    assert len(tree.plan(tree.Recipe(seed=1, plant="small", count=count))[0]) == count


def test_no_commit_comes_twice() -> None:
    patches = [
        slot.patch
        for slot in tree.plan(
            tree.Recipe(seed=9, plant="swap", count=40, unbuildable=3, unbootable=8, header=11)
        )[0]
    ]
    assert len(set(patches)) == 40


@pytest.mark.parametrize(
    "recipe",
    [
        tree.Recipe(seed=1, plant="huge"),
        tree.Recipe(seed=1, plant="large", count=5),
        tree.Recipe(seed=1, plant="large", count=90),
        tree.Recipe(seed=1, plant="large", unbuildable=20),
        tree.Recipe(seed=1, plant="large", unbuildable=4, header=5),
        tree.Recipe(seed=1, plant="large", unbootable=4, hanging=9),
    ],
)
def test_what_cannot_be_made_is_refused(recipe: tree.Recipe) -> None:
    with pytest.raises(tree.TreeError):
        tree.plan(recipe)


def test_no_commit_message_gives_its_role_away() -> None:
    for path in (tree.HERE / "series").glob("*.patch"):
        message = tree.patch_text(path.stem)[0].lower()
        assert not any(
            word in message
            for word in (
                "plant",
                "culprit",
                "look-alike",
                "regress",
                "harmless",
                "slower",
                "demo",
                "swingbot",
            )
        )
        assert max(map(len, message.splitlines())) <= 75


def test_every_patch_has_a_role_and_every_role_a_patch() -> None:
    book = tree.catalogue()
    named = {
        name
        for plant in book["plants"].values()
        for name in (plant["patch"], plant["given"], plant["improvement"], *plant["look_alikes"])
        if name
    }
    named |= {
        *book["harmless"],
        *book["same_image"],
        book["header"],
        *(name for pair in book["broken"].values() for name in pair),
    }
    assert named == {path.stem for path in (tree.HERE / "series").glob("*.patch")}


def test_equal_arguments_give_equal_ids(repo: Path) -> None:
    first = tree.make_series(repo, 7, "large", progress=quiet)
    git = tree.Repository(repo)
    git.run("update-ref", "-d", f"refs/heads/{first.branch}")
    assert tree.make_series(repo, 7, "large", progress=quiet) == first
    assert git.commit_id(first.branch) == first.tip
    assert tree.make_series(repo, 8, "large", progress=quiet).tip != first.tip


def test_the_branch_is_what_the_series_says(repo: Path) -> None:
    series = tree.make_series(repo, 7, "small", progress=quiet)
    git = tree.Repository(repo)
    assert git.run("rev-list", "--reverse", f"{series.base}..{series.branch}").split() == [
        commit.sha for commit in series.commits
    ]
    assert series.position is not None and series.commits[series.position - 1].sha == series.culprit
    changed = git.run(
        "diff-tree", "-r", "--name-only", f"{series.culprit}^", str(series.culprit)
    ).split()
    assert changed == ["mm/page_alloc.c"]
    assert git.run("rev-parse", f"{series.tip}^{{tree}}") == stacked(
        repo, patches_of(tree.Recipe(seed=7, plant="small"))
    )


def rewritten(repo: Path, path: str, contents: bytes) -> None:
    """Another tree: the source with one file as given."""
    with tree.with_index(repo, tree.SOURCE_REF) as git:
        blob = git.run("hash-object", "-w", "--stdin", stdin=contents)
        git.run("update-index", "--cacheinfo", f"100644,{blob},{path}")
        git.run("update-ref", "refs/heads/other", git.commit(tree.SOURCE_REF, "another tree\n"))


def test_on_another_tree_what_does_not_apply_is_left_out_and_said(repo: Path) -> None:
    rewritten(repo, "mm/mlock.c", b"/* all different */\n")
    said: list[str] = []
    series = tree.make_series(repo, 2, "large", onto="other", progress=said.append, count=40)
    assert set(series.dropped) <= {"mlock-min", "mlock-errno", "shm-lock"}
    assert len(said) == len(series.dropped) > 0 and len(series.commits) == 40 and series.culprit


def test_on_another_tree_without_the_given_nothing_is_undone(repo: Path) -> None:
    rewritten(repo, "mm/swap.c", b"/* all different */\n")
    series = tree.make_series(repo, 2, "large", onto="other", progress=quiet)
    assert (
        series.improvement is None
        and series.base == tree.Repository(repo).commit_id("other")
        and len(series.commits) == 20
    )


def test_a_plant_that_does_not_apply_is_an_error(repo: Path) -> None:
    rewritten(repo, "mm/page_alloc.c", b"/* all different */\n")
    with pytest.raises(tree.TreeError, match="plant large does not apply"):
        tree.make_series(repo, 2, "large", onto="other", progress=quiet)


def tarball(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:xz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"linux-source-6.1/{name}")
            if data.startswith(b"-> "):
                member.type, member.linkname = tarfile.SYMTYPE, data[3:].decode()
                tar.addfile(member)
            else:
                member.size, member.mode = len(data), 0o755 if data.startswith(b"#!") else 0o644
                tar.addfile(member, io.BytesIO(data))
    return path


def test_the_import_takes_every_file_whatever_gitignore_says(tmp_path: Path) -> None:
    source = tarball(
        tmp_path / "a.tar.xz",
        {
            ".gitignore": b"/*\n",
            'a b/"q".c': b"int x;\n",
            "run": b"#!/bin/sh\n",
            "link": b"-> run",
            "empty": b"",
        },
    )
    commit = tree.import_source(source, tmp_path / "r.git", quiet)
    listed = process.run(["git", "-C", tmp_path / "r.git", "ls-tree", "-r", "-z", commit]).split(
        "\0"
    )
    assert {(line.split()[0], line.partition("\t")[2]) for line in listed if line} == {
        ("100644", ".gitignore"), ("100644", 'a b/"q".c'), ("100755", "run"), ("120000", "link"), ("100644", "empty"),
    }  # fmt: skip


def test_a_kept_source_is_used_again_and_never_for_another_tarball(tmp_path: Path) -> None:
    one, two = (
        tarball(tmp_path / "1.tar.xz", {"mm/a.c": b"1\n"}),
        tarball(tmp_path / "2.tar.xz", {"mm/a.c": b"2\n"}),
    )
    kept = tree.kept_import(one, tmp_path / "cache", quiet)
    made = kept.stat().st_ino
    assert tree.kept_import(one, tmp_path / "cache", quiet).stat().st_ino == made
    assert tree.kept_import(two, tmp_path / "cache", quiet) != kept


def test_a_half_made_source_is_made_again(tmp_path: Path) -> None:
    source = tarball(tmp_path / "1.tar.xz", {"mm/a.c": b"1\n"})
    kept = tree.kept_import(source, tmp_path / "cache", quiet)
    for pack in (kept / "objects" / "pack").iterdir():
        pack.unlink()
    (tmp_path / "cache" / "demo-tree" / "import-left").mkdir()
    again = tree.kept_import(source, tmp_path / "cache", quiet)
    assert tree.Repository(again).run("show", "debian:mm/a.c") == "1"
    assert not list((tmp_path / "cache" / "demo-tree").glob("import-*"))


def test_a_missing_source_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(tree.TreeError, match=r"linux-source-6\.1"):
        tree.kept_import(tmp_path / "none.tar.xz", tmp_path / "cache", quiet)


def test_a_tree_that_is_no_kernel_is_refused(tmp_path: Path) -> None:
    tree.import_source(
        tarball(tmp_path / "1.tar.xz", {"README": b"1\n"}), tmp_path / "other.git", quiet
    )
    with pytest.raises(tree.TreeError, match="not a kernel tree"):
        tree.use_tree(tmp_path / "r.git", str(tmp_path / "other.git"), "debian", quiet)


def test_a_ref_that_is_not_there_is_named(tmp_path: Path) -> None:
    tree.import_source(
        tarball(tmp_path / "1.tar.xz", {"README": b"1\n"}), tmp_path / "other.git", quiet
    )
    with pytest.raises(tree.TreeError, match=r"cannot fetch v9\.9"):
        tree.use_tree(tmp_path / "r.git", str(tmp_path / "other.git"), "v9.9", quiet)


def test_every_commit_changes_one_c_file_of_mm() -> None:
    for path in (tree.HERE / "series").glob("*.patch"):
        files = [line[6:] for line in path.read_text().splitlines() if line.startswith("+++ b/")]
        assert len(files) == 1
        assert (
            files[0] == "include/linux/mm.h"
            if path.stem == "header"
            else Path(files[0]).parent == Path("mm") and files[0].endswith(".c")
        )
