"""Run make for one build, with one directory, environment, log and deadline."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from swingbot_worker import InfraError, process
from swingbot_worker.kbuild import log, recipe
from swingbot_worker.kbuild.sandboxed import SandboxedBuild
from swingbot_worker.limits import MAKE_OUTPUT_BYTES
from swingbot_worker.order import Spec
from swingbot_worker.walls import OverLimit

Progress = Callable[[str], None]
PROGRESS_SECONDS = 10.0
# The link of a kernel alone needs more than this.
FULL_BYTES = 64 << 20


class BuildFailed(Exception):
    """This commit does not build.

    `lines` are the tools' error messages; `repeatable` means that a retry would fail in the same
    way.
    """

    def __init__(self, reason: str, lines: list[str], *, repeatable: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.lines = lines
        self.repeatable = repeatable


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """make for one spec in one work tree.

    `deadline` is on the clock of `time.monotonic`, `allowed` is the order's limit in seconds. If
    `walled` is None, the commands run without the sandbox.
    """

    spec: Spec
    source: Path
    environment: dict[str, str]
    log: Path
    jobs: int
    ccache: bool
    deadline: float
    allowed: float
    lock: int
    progress: Progress | None
    expected_objects: int | None
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
        timeout = max(self.deadline - time.monotonic(), 0.001)
        watch = (
            _ProgressReporter(self.log, before, self.expected_objects, self.progress)
            if self.progress
            else None
        )
        done = self._run(argv, timeout, watch)
        if done.timed_out:
            raise BuildFailed(
                f"The build took longer than {self.allowed:g} s and was stopped.",
                [],
                repeatable=False,
            )
        if done.rc != 0:
            self._explain(before, what, done.rc)

    def _run(
        self, argv: list[str], timeout: float, watch: _ProgressReporter | None
    ) -> process.CompletedCommand:
        if self.walled is None:
            start = process.Start(cwd=self.source, env=self.environment, pass_fds=(self.lock,))
            return process.run(
                argv,
                timeout=timeout,
                log=self.log,
                start=start,
                watch=watch,
                watch_seconds=PROGRESS_SECONDS,
            )
        try:
            return self.walled.run(
                argv,
                timeout=timeout,
                log=self.log,
                env=self.environment,
                lock=self.lock,
                progress=watch,
            )
        except OverLimit as error:
            raise BuildFailed(f"The build {error}; it was stopped.", [], repeatable=False) from None

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
            raise BuildFailed(
                f"The build needed more disk space than it may use: {limits.disk >> 20} MB "
                f"(SWINGBOT_BUILD_DISK_MB), {limits.file >> 20} MB in one file, and "
                f"{limits.tmp >> 20} MB in /tmp.",
                [],
                repeatable=False,
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


class _ProgressReporter:
    """Reports the progress of make, from the object lines in its log."""

    def __init__(self, path: Path, offset: int, expected: int | None, progress: Progress) -> None:
        self._path = path
        self._offset = offset
        self._expected = expected
        self._progress = progress
        self._objects = 0

    def __call__(self, seconds: float) -> None:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            new = file.read()
        self._offset += len(new)
        self._objects += new.count(b"\n  CC ") + new.count(b"\n  AS ")
        self._progress(self._line(seconds))

    def _line(self, seconds: float) -> str:
        if self._expected is None or not 0 < self._objects < self._expected:
            return f"{seconds:.0f} s: {self._objects} objects built"
        remaining = seconds * (self._expected - self._objects) / self._objects
        return (
            f"{seconds:.0f} s: {self._objects} of about {self._expected} objects built, "
            f"about {remaining:.0f} s left"
        )
