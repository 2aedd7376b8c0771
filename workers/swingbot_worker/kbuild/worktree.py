"""The source work tree that is switched in place, and the object directories in it.

    <cache>/work/linux-<version>/lock      one build at a time
                                /git       index and object alternates, no refs
                                /src       the checked-out commit
                                /src/o-*   object directories of trusted builds, one per kconfig, compiler and layout
                                /apart     the object directory of a build that is not trusted, gone when it is over

Work trees go by kernel version, not by repository: two repositories of one version share nearly all
their files, so a second tree, or the first one in a new place, costs what differs and not a full build.
Switching touches only files that differ, which is all that make needs to do the least. Only git writes to the source:
builds see it read-only, so it is the same one for all levels of trust.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import InfraError, process
from swingbot_worker.kbuild.source import GIT_ENVIRONMENT, Source
from swingbot_worker.walls import sandbox

SWITCH_SECONDS = 1800.0
# Each holds 0.3 to 1 GB; the least recently used ones go.
OBJECT_DIRECTORIES = 6
# Time stamps of files come from the kernel's tick, which may lag behind the clock by one.
TICK_SECONDS = 0.1
MARK = ".swingbot-unfinished"
# The tree is a stranger's: nothing in it may name a program that git runs. Filters need the configuration, of which there is only ours.
_NO_PROGRAMS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "submodule.recurse=false",
    "core.symlinks=true",
)


@dataclass(frozen=True, slots=True)
class WorkTree:
    """One source work tree. All methods but `lock_file` need its lock."""

    root: Path

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def source(self) -> Path:
        return self.root / "src"

    def switch(self, to: Source) -> None:
        """Make the work tree hold exactly the files of `to`, whatever a killed build left there."""
        git_dir = self.root / "git"
        self.source.mkdir(parents=True, exist_ok=True)
        if not (git_dir / "HEAD").exists():
            shutil.rmtree(git_dir, ignore_errors=True)
            self._git("init", "-q")
        # we hold the lock, so whoever made it is dead
        (git_dir / "index.lock").unlink(missing_ok=True)
        (git_dir / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (git_dir / "objects" / "info" / "alternates").write_text(f"{to.objects}\n")
        try:
            self._read_tree(to.commit)
        except InfraError:
            # a damaged index: without one every file is written anew
            (git_dir / "index").unlink(missing_ok=True)
            self._read_tree(to.commit)
        self._git("clean", "-ffdxq", "-e", "/o-*/")

    def _read_tree(self, commit: str) -> None:
        # A copied or restored work tree has other inodes than its index says: without a refresh, git would
        # write every file anew and make would build everything. Files that really differ are reported and left.
        self._git("update-index", "-q", "--really-refresh", allowed=(0, 1))
        self._git("read-tree", "--reset", "-u", commit)

    def listing(self, *patterns: str) -> str:
        """Contents of the tracked files that match `patterns`, as git ids: changes if and only if one of them does."""
        return self._git("ls-files", "-s", "--", *patterns)

    def _git(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
        settings = (
            word
            for setting in ("checkout.workers=0", "gc.auto=0", *_NO_PROGRAMS)
            for word in ("-c", setting)
        )
        where = ["git", f"--git-dir={self.root / 'git'}", f"--work-tree={self.source}", *settings]
        answer = process.output(
            [*where, *arguments], timeout=SWITCH_SECONDS, cwd=self.source, env=GIT_ENVIRONMENT
        )
        if answer.rc not in allowed:
            why = "it took too long" if answer.timed_out else answer.text.strip()[-300:]
            raise InfraError(f"git {arguments[0]} in {self.source} failed: {why}.")
        return answer.text

    @contextlib.contextmanager
    def objects(self, name: str) -> Iterator[Path]:
        """The object directory `name`, repaired if the last build in it did not end by itself.

        make takes a half-written object for a finished one when it is younger than its source. So a
        mark stands in the directory while make runs, and if it is found, everything younger than it goes.
        The caller's exceptions leave the mark: only a normal return says that make ended by itself.
        """
        directory = self.source / name
        mark = directory / MARK
        directory.mkdir(exist_ok=True)
        if mark.exists():
            _delete_younger(directory, mark.stat().st_mtime_ns)
        else:
            mark.touch()
            os.utime(mark, (time.time(), time.time() - TICK_SECONDS))
        self._forget_oldest(directory)
        yield directory
        mark.unlink()

    @contextlib.contextmanager
    def objects_apart(self, name: str) -> Iterator[Path]:
        """An object directory for one build that is not trusted: a copy of what trusted builds left, if that is whole, and gone afterwards.

        So such a build starts from objects that only trusted ones made, costs no more than they do, and leaves nothing for anyone.
        """
        directory, seed = self.root / "apart" / name, self.source / name
        seed.mkdir(exist_ok=True)  # where it is seen from inside
        sandbox.forget(directory.parent)  # of a worker that died
        directory.parent.mkdir(mode=0o700)
        try:
            if (seed / MARK).exists():
                directory.mkdir()
            else:
                sandbox.copied(seed, directory)
            yield directory
        finally:
            sandbox.forget(directory.parent)

    @contextlib.contextmanager
    def detour(self, directory: Path, *aside: str) -> Iterator[None]:
        """Let make produce something else in a finished object directory, and leave no trace of it.

        What is made within is younger than all that was there, and goes at the end; the files `aside` go first, so that
        make sees a reason to make them. The next build makes again what is missing then, as after any change.
        A detour that dies leaves the mark of `objects`, and the next build deletes even more.
        """
        time.sleep(2 * TICK_SECONDS)
        began = time.time_ns() - int(TICK_SECONDS * 1e9)
        for name in aside:
            (directory / name).unlink(missing_ok=True)
        try:
            yield
        finally:
            _delete_younger(directory, began)

    def _forget_oldest(self, in_use: Path) -> None:
        os.utime(in_use)
        by_age = sorted(
            self.source.glob("o-*"), key=lambda path: path.stat().st_mtime, reverse=True
        )
        for path in by_age[OBJECT_DIRECTORIES:]:
            shutil.rmtree(path, ignore_errors=True)


def _delete_younger(directory: Path, nanoseconds: int) -> None:
    for parent, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)
            if name != MARK and os.lstat(path).st_mtime_ns >= nanoseconds:
                os.unlink(path)
