"""Give each kernel tree its own object directories and compiler cache.

A commit can leave objects that make takes for finished, with any content, and any file in the
compiler cache. So a build uses what builds of its own tree left, and nothing of another tree.

The path of an object directory is the same for all trees, because debug information and the
commands that kbuild compares may contain it. The directory of another tree is moved aside first.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from swingbot_worker.order import NO_TREE
from swingbot_worker.walls import sandbox

# Each object directory holds 0.3 to 1 GB, each compiler cache up to recipe.CCACHE_SIZE.
MOST_DIRECTORIES: Final = 6
MOST_CACHES: Final = 6


def claim(root: Path, name: str, tree: str) -> None:
    """Put the object directory `name` of `tree` into the work tree `root`; it may not exist yet.

    The caller holds the lock of the work tree. After a crash on any line the next call completes
    the exchange. A directory without an owner belongs to orders that name no tree.
    """
    place, note = root / "src" / name, root / "owners" / name
    owner = note.read_text().strip() if note.exists() else NO_TREE
    if place.exists():
        if owner == tree:
            return
        aside = _parked(root, owner, name)
        aside.parent.mkdir(parents=True, exist_ok=True)
        sandbox.forget(aside)
        place.rename(aside)
    note.parent.mkdir(parents=True, exist_ok=True)
    written = note.with_name(f".{name}.new")
    written.write_text(f"{tree}\n")
    written.replace(note)
    with suppress(FileNotFoundError):
        _parked(root, tree, name).rename(place)


def forget_oldest(root: Path, in_use: Path) -> None:
    """Delete all but the most recently used object directories of the work tree `root`."""
    os.utime(in_use)
    _forget([*(root / "src").glob("o-*"), *(root / "parked").glob("*/o-*")], MOST_DIRECTORIES)


def compiler_cache(cache: Path, tree: str) -> Path:
    """Return the directory for ccache of builds of `tree`; it may not exist."""
    return cache / "ccache" if tree == NO_TREE else cache / "ccaches" / tree


def use_compiler_cache(directory: Path) -> None:
    """Create the cache `directory`, and delete those of trees that were not built for longest."""
    directory.mkdir(parents=True, exist_ok=True)
    os.utime(directory)
    if directory.parent.name == "ccaches":
        _forget(directory.parent.iterdir(), MOST_CACHES)


def _parked(root: Path, tree: str, name: str) -> Path:
    return root / "parked" / tree / name


def _forget(directories: Iterator[Path] | list[Path], most: int) -> None:
    by_age = sorted(directories, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[most:]:
        shutil.rmtree(path, ignore_errors=True)
