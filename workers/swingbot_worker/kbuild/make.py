"""Run make for one build, with one directory, environment, log and measure of progress."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import InfraError, LimitReached, process
from swingbot_worker.kbuild import log, recipe
from swingbot_worker.kbuild.progress import PROGRESS_SECONDS, BuildProgress
from swingbot_worker.kbuild.sandboxed import SandboxedBuild
from swingbot_worker.limits import MAKE_OUTPUT_BYTES
from swingbot_worker.order import Spec
from swingbot_worker.walls import OverLimit

# The link of a kernel alone needs more than this.
FULL_BYTES = 64 << 20


class BuildFailed(Exception):
    """This commit does not build; `lines` are the tools' error messages.

    A limit of ours that ends a build says nothing about the commit: that is an InfraError.
    """

    def __init__(self, reason: str, lines: list[str]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.lines = lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """make for one spec in one work tree.

    `seconds` is the wall time after which a command is ended whatever it does. If `walled` is None,
    the commands run without the sandbox.
    """

    spec: Spec
    source: Path
    environment: dict[str, str]
    log: Path
    jobs: int
    ccache: bool
    seconds: float
    lock: int
    progress: BuildProgress
    walled: SandboxedBuild | None = None

    def run(self, *targets: str) -> None:
        """Build `targets`. Raises BuildFailed or InfraError."""
        argv = recipe.make_argv(
            self.spec, self.source, jobs=self.jobs, ccache=self.ccache, targets=targets
        )
        self.command(argv, f"make {' '.join(targets)}")

    def command(self, argv: list[str], what: str) -> None:
        """Run one command of the build in the source directory.

        Raises BuildFailed or InfraError.
        """
        before = self.log.stat().st_size if self.log.exists() else 0
        self.progress.command()
        done = self._run(argv)
        if done.timed_out:
            raise LimitReached(
                f"The build was stopped: `{what}` had not ended after {self.seconds:.0f} s."
            )
        if done.rc != 0:
            self._explain(before, what, done.rc)

    def _run(self, argv: list[str]) -> process.CompletedCommand:
        if self.walled is None:
            start = process.Start(cwd=self.source, env=self.environment, pass_fds=(self.lock,))
            return process.run(
                argv,
                timeout=self.seconds,
                log=self.log,
                start=start,
                watch=self.progress,
                watch_seconds=PROGRESS_SECONDS,
            )
        try:
            return self.walled.run(
                argv,
                timeout=self.seconds,
                log=self.log,
                env=self.environment,
                lock=self.lock,
                progress=self.progress,
            )
        except OverLimit as error:
            raise LimitReached(f"The build was stopped: it {error}.") from None

    def note(self, line: str) -> None:
        """Append a swingbot line to the build log."""
        with self.log.open("a") as file:
            file.write(f"swingbot: {line}\n")

    def _explain(self, before: int, what: str, rc: int) -> None:
        with self.log.open("rb") as file:
            file.seek(before)
            text = file.read(MAKE_OUTPUT_BYTES).decode(errors="replace")
        if self.walled is not None and self.walled.limited and log.disk_full(text):
            limits = self.walled.sandbox.limits
            raise LimitReached(
                f"The build needed more disk space than it may use: {limits.disk >> 20} MB "
                f"(SWINGBOT_BUILD_DISK_MB), {limits.file >> 20} MB in one file, and "
                f"{limits.tmp >> 20} MB in /tmp."
            )
        if fault := log.lab_fault(text):
            raise InfraError(fault)
        free = shutil.disk_usage(self.source).free
        if free < FULL_BYTES:  # not every tool reports why a write failed
            raise InfraError(
                f"The disk of the build cache is full ({free >> 20} MiB free at {self.source}); "
                "free some space."
            )
        if rc < 0:  # make itself was killed, not one of its commands: no kernel tree does that
            raise InfraError(
                f"`{what}` was killed from outside by signal {-rc}; find out what kills processes "
                "on this worker."
            )
        lines = log.error_lines(text)
        first = lines[0] if lines else "it printed nothing"
        raise BuildFailed(f"`{what}` failed: {first}", lines)
