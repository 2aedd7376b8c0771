"""The commands of one build, behind walls where they stand, and what they left, made safe to read."""

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
from swingbot_worker.walls.sandbox import Sandbox

# What we remember beside the objects of a build. One that is not trusted could have written it, so it is not read then.
MEMORIES: Final = (".swingbot-functions.json", ".swingbot-objects.json")


def walls_for(trust: Trust) -> Sandbox | None:
    """The walls that a build of this level gets; None: it is trusted, and there are none on this host. Raises InfraError if it must have them."""
    found = walls.probe()
    if found.sandbox is None and trust == "untrusted":
        raise InfraError(
            "This kernel is not trusted, so it is built behind walls or not at all, and they do not stand on this worker "
            f"({walls.missing(found.walls[:1])}); `swingbot-worker walls` says more, docs/walls.md what to do."
        )
    return found.sandbox


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxedBuild:
    """One build's walls: which they are, what is in sight, and where its objects really are."""

    sandbox: Sandbox
    view: View
    objects: Path

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
        """Walls for a build in `tree`, whose object directory `name` is `objects`; only trusted builds see a compiler cache."""
        writable = [(objects, tree.source / name)]
        if trust == "trusted":
            ccache.mkdir(parents=True, exist_ok=True)
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
        return cls(sandbox=sandbox, view=view, objects=objects)

    def run(
        self,
        argv: list[str],
        *,
        timeout: float,
        log: Path,
        env: dict[str, str],
        lock: int,
        progress: Callable[[float], None] | None,
    ) -> process.Completed:
        """Run one command; then nothing of it runs any more, and its objects hold only what can be read by name. Raises OverLimit or InfraError."""
        command = sandbox.SandboxedCommand(
            argv=argv, view=self.view, env=env, log=log, measured=self.objects, keep=lock
        )
        done = self.sandbox.run(command, timeout=timeout, progress=progress)
        walls.clean(self.objects, self.sandbox.limits)
        if self.view.trust == "untrusted":
            for name in MEMORIES:
                (self.objects / name).unlink(missing_ok=True)
        return done


def sandbox_owned(directory: Path, walls_: Sandbox, trust: Trust) -> None:
    sandbox.owned(directory.resolve(), walls_.way, trust)
