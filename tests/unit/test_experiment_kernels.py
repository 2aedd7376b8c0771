"""The kernels of an experiment, from a real mirror: what becomes a row, and what is refused."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

from swingbot.adapters.git import Mirror
from swingbot.core.model.records import Tree
from swingbot.core.patchset.model import PatchSeries
from swingbot.core.patchset.read import read_file
from swingbot.service.ports import Lab, RequestError
from swingbot.service.table import kernels
from swingbot.service.table.kernels import KernelRequest, NamedKernel, kernels_of
from swingbot.service.watch.trees import tree_of
from tests.fakes.memory_lab import MemoryLab
from tests.patch_series import ENVIRONMENT, Change, git, mailbox, make_repo

CHANGES = [
    Change(files={"mm/a.c": b"a\n", "mm/b.c": b"b\n"}, message="base"),
    Change(files={"mm/a.c": b"A\n"}, message="mm: a becomes A"),
    Change(files={"mm/b.c": b"B\n"}, message="mm: b becomes B"),
]


@dataclass(frozen=True, kw_only=True)
class World:
    repo: Path
    commits: list[str]
    lab: Lab
    tree: Tree

    def rows(self, request: KernelRequest) -> list[tuple[str, str]]:
        return [
            (kernel.name, kernel.about)
            for kernel in kernels_of(self.lab.tools.git, self.tree, request)
        ]

    def fetch(self) -> str:
        return self.lab.tools.git.fetch_branch(self.tree.name, str(self.repo), "main")


def each(series: PatchSeries) -> NamedKernel:
    return NamedKernel(name="", series=series, each=True)


def a_tree(lab: Lab, name: str, url: str, base: str, tip: str) -> Tree:
    with lab.transaction("add") as tx:
        tree = tx.trees.add(
            Tree(
                id=0,
                name=name,
                url=url,
                branch="main",
                base_commit=base,
                tip_commit=None,
                job_files=(),
                testboxes=(),
                paths=(),
                kconfig="vm-x86_64",
                compiler="gcc",
            )
        )
        tx.trees.add_change(tree.id, "first", base, tip)
        return tx.trees.get(tree.id)


@pytest.fixture
def world(tmp_path: Path) -> World:
    repo = tmp_path / "repo.git"
    commits = make_repo(repo, CHANGES)
    lab = MemoryLab().lab
    lab = replace(lab, tools=replace(lab.tools, git=Mirror(tmp_path / "mirror.git")))
    tree = a_tree(lab, "one", str(repo), commits[0], commits[-1])
    lab.tools.git.fetch_branch("one", str(repo), "main")
    return World(repo=repo, commits=commits, lab=lab, tree=tree)


def merged(world: World) -> str:
    """A branch of two commits on the base, merged into main."""
    base, tip = world.commits[0], world.commits[-1]
    tree = git(world.repo, "rev-parse", f"{tip}^{{tree}}").decode().strip()
    side = base
    for subject in ("side: one", "side: two"):
        side = commit_tree(world.repo, tree, [side], subject)
    merge = commit_tree(world.repo, tree, [tip, side], "Merge branch 'side'")
    last = commit_tree(world.repo, tree, [merge], "mm: after the merge")
    git(world.repo, "update-ref", "refs/heads/main", last)
    return merge


def commit_tree(repo: Path, tree: str, parents: list[str], subject: str) -> str:
    words = [word for parent in parents for word in ("-p", parent)]
    who = ("-c", "user.name=A", "-c", "user.email=a@b")
    return git(repo, *who, "commit-tree", tree, *words, "-m", subject).decode().strip()


def test_a_merge_is_one_row_with_all_that_it_brings_in(world: World) -> None:
    merge = merged(world)
    tip = world.fetch()
    assert world.rows(KernelRequest(range=(world.commits[0], tip))) == [
        (world.commits[0][:12], ""),
        (world.commits[1][:12], "mm: a becomes A"),
        (world.commits[2][:12], "mm: b becomes B"),
        (merge[:12], "merge: Merge branch 'side'"),
        (tip[:12], "mm: after the merge"),
    ]


def test_a_range_of_ten_thousand_commits_is_refused_with_its_number(world: World) -> None:
    tip = world.commits[-1]
    stream = f"reset refs/heads/main\nfrom {tip}\n\n" + "".join(
        f"commit refs/heads/main\ncommitter A <a@b> {n} +0000\ndata 1\nx\n" for n in range(9998)
    )
    subprocess.run(
        ["git", "-C", world.repo, "fast-import", "--quiet"],
        input=stream.encode(),
        env=ENVIRONMENT,
        check=True,
    )
    request = KernelRequest(range=(world.commits[0], world.fetch()))
    with pytest.raises(RequestError, match="has 10000 commits; at most 199 are allowed"):
        world.rows(request)


def test_a_patch_that_does_not_apply_is_named_with_the_commit_that_it_should_apply_on(
    world: World,
) -> None:
    first, second = read_file("s.mbx", mailbox(world.repo, 2)).patches
    series = PatchSeries(patches=(first, second, replace(first, number=3)))
    on = world.lab.tools.git.apply_series(world.commits[0], [first, second])[-1]
    with pytest.raises(RequestError) as refused:
        world.rows(KernelRequest(base=world.commits[0], rows=[each(series)]))
    assert f"patch 3/3 (mm: a becomes A) does not apply on {on[:12]}: " in str(refused.value)


def test_a_variant_whose_patch_does_not_apply_is_named(world: World) -> None:
    patch = read_file("s.mbx", mailbox(world.repo, 2)).patches[0]
    request = KernelRequest(
        base=world.commits[2],
        rows=[NamedKernel(name="a", series=PatchSeries(patches=(patch,)))],
    )
    with pytest.raises(RequestError, match=r"^a: patch 1/1 \(mm: a becomes A\) does not"):
        world.rows(request)


def test_a_series_with_too_many_patches_is_refused_before_it_is_applied(world: World) -> None:
    patch = read_file("s.mbx", mailbox(world.repo, 2)).patches[0]
    series = PatchSeries(patches=tuple(replace(patch, number=n) for n in range(1, 201)))
    before = git(Path(world.lab.tools.git.path), "count-objects")  # type: ignore[attr-defined]
    with pytest.raises(
        RequestError, match="that makes 201 rows with the base; at most 200 are allowed"
    ):
        world.rows(KernelRequest(base=world.commits[0], rows=[each(series)]))
    assert git(Path(world.lab.tools.git.path), "count-objects") == before  # type: ignore[attr-defined]


def test_the_tree_may_be_left_out_if_only_one_has_the_commits(world: World, tmp_path: Path) -> None:
    refs = world.commits[:2]
    assert tree_of(world.lab.transaction, world.lab.tools.git, None, refs).name == "one"
    other = make_repo(tmp_path / "other.git", [Change(files={"x": b"x\n"}, message="other")])
    a_tree(world.lab, "two", str(tmp_path / "other.git"), other[0], other[0])
    world.lab.tools.git.fetch_branch("two", str(tmp_path / "other.git"), "main")
    assert tree_of(world.lab.transaction, world.lab.tools.git, None, refs).name == "one"
    assert tree_of(world.lab.transaction, world.lab.tools.git, None, other).name == "two"
    with pytest.raises(RequestError, match="^no tree has .*; name one with --tree: one, two$"):
        tree_of(world.lab.transaction, world.lab.tools.git, None, [refs[0], other[0]])


def test_commits_that_several_trees_have_need_a_tree(world: World) -> None:
    a_tree(world.lab, "copy", str(world.repo), world.commits[0], world.commits[-1])
    world.lab.tools.git.fetch_branch("copy", str(world.repo), "main")
    refs = world.commits[:2]
    with pytest.raises(RequestError) as refused:
        tree_of(world.lab.transaction, world.lab.tools.git, None, refs)
    assert str(refused.value) == (
        f"several trees have {refs[0]}, {refs[1]}; choose one with --tree: copy, one"
    )
    assert tree_of(world.lab.transaction, world.lab.tools.git, "copy", refs).name == "copy"


def test_a_glob_is_matched_once_for_each_path(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges of merges name each path thousands of times."""
    asked: list[str] = []

    def counting(path: str, glob: str) -> bool:
        asked.append(path)
        return fnmatch(path, glob)

    monkeypatch.setattr(kernels, "fnmatch", counting)
    again = [Change(files={"mm/b.c": b"%d\n" % n}, message=f"mm: {n}") for n in range(5)]
    longer = world.repo.parent / "longer.git"
    commits = make_repo(longer, [*CHANGES, *again])
    world.lab.tools.git.fetch_branch("one", str(longer), "main")
    ends = (commits[0], commits[-1])
    found = world.rows(KernelRequest(range=ends, paths=["mm/b*"]))
    assert len(found) == 1 + 6 and sorted(asked) == ["mm/a.c", "mm/b.c"]
