"""Run the commands of one build in the sandbox, and make its output safe to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swingbot_jobs.contract.trust import Trust
from swingbot_worker import InfraError, process, walls
from swingbot_worker.kbuild.worktree import WorkTree
from swingbot_worker.walls import sandbox
from swingbot_worker.walls.argv import View
from swingbot_worker.walls.guard import GrowingCache
from swingbot_worker.walls.sandbox import Sandbox

# Caches that swingbot keeps with the objects of a build. An untrusted build could have forged them,
# so they are deleted.
MEMORIES: Final = (".swingbot-functions.json", ".swingbot-objects.json")


def walls_for(trust: Trust) -> Sandbox | None:
    """Return the sandbox for a build of this trust level.

    None means that the build is trusted and this host has no walls. Raises InfraError for an
    untrusted build without walls.
    """
    probe = walls.probe()
    if trust == "untrusted" and not probe.complete:
        lacking = [wall for wall in probe.walls if not wall.stands]
        raise InfraError(
            "This kernel is not trusted, so it must be built behind walls, which this worker does "
            f"not have ({walls.missing(lacking[:1])}); run `swingbot-worker walls` for details "
            "and see docs/walls.md."
        )
    return probe.sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedBuild:
    """The sandbox of one build, its view of the file system, and the real path of its objects."""

    sandbox: Sandbox
    view: View
    objects: Path
    ccache: GrowingCache | None  # None: the build has none

    @classmethod
    def around(
        cls,
        sandbox: Sandbox,
        trust: Trust,
        tree: WorkTree,
        objects: Path,
        name: str,
        kconfigs: tuple[Path, ...],
        ccache: Path,
    ) -> SandboxedBuild:
        """Return the sandbox of a build in `tree`, whose object directory `name` is `objects`.

        Only trusted builds have access to a compiler cache.
        """
        writable = [(objects, tree.source / name)]
        if trust == "trusted":
            sandbox_owned(ccache, sandbox, trust)
            writable.append((ccache.resolve(), ccache))
        sandbox_owned(objects, sandbox, trust)
        others = tuple(path for path in sorted(tree.source.glob("o-*")) if path.name != name)
        view = View(
            trust=trust,
            read_only=(tree.source, *kconfigs),
            writable=tuple(writable),
            empty=others,
            directory=tree.source,
        )
        cache = GrowingCache.at(ccache.resolve()) if trust == "trusted" else None
        return cls(sandbox=sandbox, view=view, objects=objects, ccache=cache)

    @property
    def limited(self) -> bool:
        """Whether the objects are on a file system of limited size."""
        return self.view.trust == "untrusted" and self.sandbox.scratch is not None

    def run(
        self,
        argv: list[str],
        *,
        timeout: float,
        log: Path,
        env: dict[str, str],
        lock: int,
        progress: Callable[[float], None] | None,
    ) -> process.CompletedCommand:
        """Run one command and wait until all of its processes have exited.

        Afterwards its objects are regular files that can be opened by name. Raises OverLimit or
        InfraError.
        """
        command = sandbox.SandboxedCommand(
            argv=argv,
            view=self.view,
            env=env,
            log=log,
            measured=self.objects,
            cache=self.ccache,
            keep=lock,
        )
        try:
            done = self.sandbox.run(command, timeout=timeout, progress=progress)
        except walls.OverLimit:
            if self.ccache is not None:  # it may be the part that grew, and is only a cache
                sandbox.forget(self.ccache.directory)
            raise
        walls.clean(self.objects, self.sandbox.limits)
        if self.view.trust == "untrusted":
            for name in MEMORIES:
                (self.objects / name).unlink(missing_ok=True)
        return done


def sandbox_owned(directory: Path, walls_: Sandbox, trust: Trust) -> None:
    sandbox.owned(directory.resolve(), walls_.way, trust)
