"""Each tree has object directories of its own, at one path, whatever line a worker dies on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from swingbot_worker.kbuild import tree_objects
from swingbot_worker.order import NO_TREE

NAME = "o-tiny-gcc-0"


def use(root: Path, tree: str) -> str:
    """Claim the directory for `tree` and return who wrote to it before; sign it."""
    tree_objects.claim(root, NAME, tree)
    place = root / "src" / NAME
    place.mkdir(parents=True, exist_ok=True)
    signature = place / "signature"
    before = signature.read_text() if signature.exists() else ""
    signature.write_text(tree)
    return before


def test_trees_take_turns_at_one_path(tmp_path: Path) -> None:
    turns = ["t1", "t1", "t2", "t1", NO_TREE, "t2", NO_TREE]
    assert [use(tmp_path, tree) for tree in turns] == ["", "t1", "", "t1", "", "t2", NO_TREE]


def test_a_directory_of_an_earlier_version_belongs_to_orders_without_a_tree(tmp_path: Path) -> None:
    (tmp_path / "src" / NAME).mkdir(parents=True)
    (tmp_path / "src" / NAME / "signature").write_text("earlier")
    assert (use(tmp_path, "t1"), use(tmp_path, NO_TREE)) == ("", "earlier")


class Died(BaseException):
    pass


@pytest.mark.parametrize("line", range(6))
def test_a_worker_that_dies_in_the_exchange_gives_no_tree_the_objects_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: int
) -> None:
    """It dies before the change number `line` of the file system, and t1, t2 or a third is next."""
    for number, tree in enumerate(["t1", "t2", "t3"]):
        root = tmp_path / str(number)
        for earlier in ("t1", "t2", "t1"):
            use(root, earlier)
        changes = iter(range(100))

        def dying(name: str, changes: object = changes) -> None:
            original = getattr(Path, name)

            def change(self: Path, *arguments: object, **named: object) -> object:
                if next(changes) == line:  # type: ignore[call-overload]
                    raise Died
                return original(self, *arguments, **named)

            monkeypatch.setattr(Path, name, change)

        for name in ("rename", "replace", "write_text", "mkdir"):
            dying(name)
        with contextlib.suppress(Died):
            tree_objects.claim(root, NAME, "t2")
        monkeypatch.undo()
        assert use(root, tree) in ("", tree)
        assert {use(root, other) for other in ("t1", "t2")} <= {"t1", "t2"}


def test_the_least_recently_used_caches_are_deleted(tmp_path: Path) -> None:
    for number in range(9):
        directory = tree_objects.compiler_cache(tmp_path, f"t{number}")
        directory.mkdir(parents=True)
        os.utime(directory, (number, number))
    shared = tree_objects.compiler_cache(tmp_path, NO_TREE)
    tree_objects.use_compiler_cache(shared)
    tree_objects.use_compiler_cache(tree_objects.compiler_cache(tmp_path, "t1"))
    left = {path.name for path in (tmp_path / "ccaches").iterdir()}
    assert left == {"t1", "t4", "t5", "t6", "t7", "t8"} and shared.is_dir()
