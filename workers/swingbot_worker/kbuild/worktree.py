"""The source work tree, which is switched in place, and its object directories.

    <cache>/work/linux-<version>/lock      one build at a time
                                /git       index and object alternates, no refs
                                /src       the checked-out commit
                                /src/o-*   object directories of trusted builds, one per kconfig,
                                           compiler and layout
                                /apart     the object directory of an untrusted build, deleted
                                           afterwards

There is one work tree per kernel version, not per repository. Repositories of one version share
nearly all their files, so a second or moved repository needs only an incremental build. A switch
touches only files that differ, so that make rebuilds as little as possible. Only git writes to the
source: builds have it read-only, so all trust levels share it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import InfraError, process
from swingbot_worker.kbuild import tree_objects
from swingbot_worker.kbuild.source import GIT_ENVIRONMENT, GIT_LIMITS, KernelSource
from swingbot_worker.order import NO_TREE
from swingbot_worker.walls import disk, sandbox
from swingbot_worker.walls.sandbox import Sandbox

SWITCH_SECONDS = 1800.0
# File time stamps come from the kernel's tick, which may lag behind the clock by one tick.
TICK_SECONDS = 0.1
MARK = ".swingbot-unfinished"
# The tree is untrusted: nothing in it may make git run a program. Filters need git configuration,
# which only swingbot writes.
_NO_PROGRAMS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "submodule.recurse=false",
    "core.symlinks=true",
)


@dataclass(frozen=True, slots=True)
class WorkTree:
    """One source work tree. Callers of all methods except `lock_file` hold its lock.

    `tree` is the kernel tree whose objects a build may reuse.
    """

    root: Path
    tree: str = NO_TREE

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def source(self) -> Path:
        return self.root / "src"

    def switch(self, to: KernelSource) -> None:
        """Switch the work tree to exactly the files of `to`, even after a killed build."""
        git_dir = self.root / "git"
        self.source.mkdir(parents=True, exist_ok=True)
        if not (git_dir / "HEAD").exists():
            shutil.rmtree(git_dir, ignore_errors=True)
            self._git("init", "-q")
        # this process holds the lock, so the process that created index.lock is dead
        (git_dir / "index.lock").unlink(missing_ok=True)
        (git_dir / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (git_dir / "objects" / "info" / "alternates").write_text(f"{to.objects}\n")
        try:
            self._read_tree(to.commit)
        except InfraError:
            # a damaged index: without an index, git writes every file again
            (git_dir / "index").unlink(missing_ok=True)
            self._read_tree(to.commit)
        self._git("clean", "-ffdxq", "-e", "/o-*/")

    def _read_tree(self, commit: str) -> None:
        # The inodes of a copied or restored work tree differ from its index. Without a refresh, git
        # would rewrite every file and make would rebuild everything. Files that really differ are
        # reported and not refreshed.
        self._git("update-index", "-q", "--really-refresh", allowed=(0, 1))
        self._git("read-tree", "--reset", "-u", commit)

    def listing(self, *patterns: str) -> str:
        """Return the git ids of the tracked files that match `patterns`.

        The text changes if and only if one of the files changes.
        """
        return self._git("ls-files", "-s", "--", *patterns)

    def options(self, names: Set[str]) -> set[str]:
        """Return those of `names`, with CONFIG_, that a Kconfig file of the work tree defines."""
        if not names:
            return set()
        patterns = (
            word
            for name in names
            for word in ("-e", rf"^\s*(menu)?config\s+{name.removeprefix('CONFIG_')}\s*$")
        )
        found = self._git("grep", "-hE", *patterns, "--", ":(glob)**/Kconfig*", allowed=(0, 1))
        return {f"CONFIG_{line.split()[-1]}" for line in found.splitlines() if line.strip()}

    def _git(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
        settings = (
            word
            for setting in ("checkout.workers=0", "gc.auto=0", *_NO_PROGRAMS)
            for word in ("-c", setting)
        )
        where = ["git", f"--git-dir={self.root / 'git'}", f"--work-tree={self.source}", *settings]
        answer = process.output(
            [*where, *arguments],
            timeout=SWITCH_SECONDS,
            cwd=self.source,
            env=GIT_ENVIRONMENT,
            within=GIT_LIMITS,
        )
        if answer.rc not in allowed:
            why = "it took too long" if answer.timed_out else answer.text.strip()[-300:]
            raise InfraError(f"git {arguments[0]} in {self.source} failed: {why}.")
        return answer.text

    @contextlib.contextmanager
    def objects(self, name: str) -> Iterator[Path]:
        """Yield the object directory `name`, repaired if the last build in it was interrupted.

        make treats a half-written object as finished if it is newer than its source. Therefore a
        mark file exists while make runs. If the next build finds the mark, it deletes everything
        newer. An exception of the caller leaves the mark in place; only a normal exit removes it.
        """
        tree_objects.claim(self.root, name, self.tree)
        directory = self.source / name
        mark = directory / MARK
        directory.mkdir(exist_ok=True)
        if mark.exists():
            _delete_younger(directory, mark.stat().st_mtime_ns)
        else:
            mark.touch()
            os.utime(mark, (time.time(), time.time() - TICK_SECONDS))
        tree_objects.forget_oldest(self.root, directory)
        yield directory
        mark.unlink()

    @contextlib.contextmanager
    def objects_apart(self, name: str, behind: Sandbox) -> Iterator[Path]:
        """Yield an object directory for one untrusted build, which is deleted afterwards.

        It starts as a copy of the objects of trusted builds of its tree if those are complete. So
        an untrusted build uses only objects of trusted builds, takes no longer than a trusted one,
        and leaves nothing for other builds. Its size is limited.
        """
        tree_objects.claim(self.root, name, self.tree)
        apart, seed = self.root / "apart", self.source / name
        seed.mkdir(exist_ok=True)  # its path inside the sandbox
        disk.release(apart)  # left by a worker that died
        sandbox.forget(apart)
        apart.mkdir(mode=0o700)
        try:
            with behind.room(apart / name) as directory:
                if not (seed / MARK).exists():
                    sandbox.copied(seed, directory)
                yield directory
        finally:
            sandbox.forget(apart)

    @contextlib.contextmanager
    def detour(self, directory: Path, *aside: str) -> Iterator[None]:
        """Let make build something else in a finished object directory, and remove it afterwards.

        Files written in the detour are newer than all others and are deleted at the end. The files
        `aside` are deleted first, so that make rebuilds them. The next build rebuilds missing
        files, as after any change. If the process dies in a detour, the mark of `objects` remains,
        and the next build deletes even more.
        """
        time.sleep(2 * TICK_SECONDS)
        began = time.time_ns() - int(TICK_SECONDS * 1e9)
        for name in aside:
            (directory / name).unlink(missing_ok=True)
        try:
            yield
        finally:
            _delete_younger(directory, began)


def _delete_younger(directory: Path, nanoseconds: int) -> None:
    for parent, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(parent, name)
            if name != MARK and os.lstat(path).st_mtime_ns >= nanoseconds:
                os.unlink(path)
