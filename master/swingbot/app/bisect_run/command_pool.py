"""Pool of running boots: starts, watches and kills CMD.

Up to `jobs` boots run at once, each in its own work tree if commits are checked out.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swingbot.app import limits
from swingbot.app.bisect_run import command_result, process
from swingbot.app.bisect_run.failures import RunError
from swingbot.app.bisect_run.journal import BootRequest, BootResult
from swingbot.app.bisect_run.layout_recipe import VariedLinks
from swingbot.app.bisect_run.repository import Repository, clean_environment

# polling interval of the output size; a runaway program writes gigabytes per second
_LOOK_SECONDS: Final = 0.25
_KEPT_OUTPUT: Final = 1 << 20  # bytes of excessive output that are kept for diagnosis


@dataclass(slots=True)
class _Boot:
    asked: BootRequest
    slot: int
    child: process.Child
    out: Path
    err: Path
    at: float
    began: float
    limit: float | None
    timed_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkCommand:
    argv: Sequence[str]
    checkout: bool
    pattern: re.Pattern[str] | None
    jobs: int
    links: VariedLinks | None = None  # that vary the layout; None: CMD does it, or nobody
    image: Path | None = None  # that CMD builds and measures


class CommandPool:
    """Runs CMD for each requested boot and returns the results in order of completion."""

    def __init__(
        self, repository: Repository, state: Path, command: BenchmarkCommand, zero: float
    ) -> None:
        """`zero`: offset from the monotonic clock to seconds since the start of the bisection."""
        self.repository, self.state, self.command, self.zero = repository, state, command, zero
        self._under_way: dict[int, _Boot] = {}
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()

    @property
    def busy(self) -> bool:
        return bool(self._under_way)

    @property
    def free(self) -> bool:
        return len(self._under_way) < self.command.jobs

    @property
    def under_way(self) -> list[BootRequest]:
        return [boot.asked for boot in self._under_way.values()]

    def start(self, asked: BootRequest, limit: float | None) -> None:
        """Start CMD for a boot; `limit` in seconds, None for no timeout.

        Raises RunError if CMD cannot be started.
        """
        slot = next(i for i in range(self.command.jobs) if i not in self._under_way)
        tree = self.state / f"tree-{slot}" if self.command.checkout else None
        if tree is not None:
            self.repository.check_out(tree, asked.control or asked.sha)
        name = f"-layout{asked.layout}" if asked.layout else ""
        stem = self.state / "boots" / f"{asked.sha[:12]}-{asked.k}{name}"
        out, err = stem.with_suffix(".out"), stem.with_suffix(".err")
        env = clean_environment() | {
            "SWINGBOT_COMMIT": asked.control or asked.sha,
            "SWINGBOT_BOOT": str(asked.k),
            "SWINGBOT_LAYOUT": str(asked.built_in),
            process.MARK: str(self.state),
        }
        if self.command.links and tree is not None:
            self.command.links.prepare(tree, asked.built_in)
            env |= self.command.links.environment(tree)
        began = time.monotonic()
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            child = process.start(self.command.argv, env=env, cwd=tree, out=out, err=err)
        except OSError as error:
            raise RunError(self._no_start(error, asked)) from None
        self._under_way[slot] = _Boot(asked, slot, child, out, err, began + self.zero, began, limit)
        threading.Thread(target=self._wait, args=(slot, child), daemon=True).start()

    def next(self) -> tuple[BootResult, str | None]:
        """Wait for a boot to end; return its result and a warning.

        Raises RunError if the exit status means that CMD itself is broken.
        """
        while True:
            with contextlib.suppress(queue.Empty):
                return self._result(self._under_way.pop(self._ended.get(timeout=self._patience())))
            self._watch()

    def stop(self) -> None:
        """Kill all running boots; they are not recorded and will be requested again."""
        for boot in self._under_way.values():
            process.end(boot.child)
        while self._under_way:
            self._under_way.pop(self._ended.get())

    def take_down(self) -> None:
        for slot in range(self.command.jobs):
            tree = self.state / f"tree-{slot}"
            if tree.exists():
                self.repository.remove(tree)
            if self.command.links:
                self.command.links.take_down(tree)

    def _wait(self, slot: int, child: process.Child) -> None:
        child.wait()
        process.end(child)
        self._ended.put(slot)

    def _patience(self) -> float:
        remaining = [
            boot.began + boot.limit - time.monotonic()
            for boot in self._under_way.values()
            if boot.limit is not None and not boot.timed_out
        ]
        return max(0.0, min([_LOOK_SECONDS, *remaining]))

    def _watch(self) -> None:
        for boot in self._under_way.values():
            if (
                boot.limit is not None
                and not boot.timed_out
                and time.monotonic() - boot.began >= boot.limit
            ):
                boot.timed_out = True
                process.end(boot.child)
            if max(_size(boot.out), _size(boot.err)) > limits.COMMAND_BYTES:
                process.end(boot.child)
                boot.child.wait()
                for path in (boot.out, boot.err):
                    os.truncate(path, min(_size(path), _KEPT_OUTPUT))
                raise RunError(
                    f"CMD printed more than {limits.COMMAND_BYTES >> 20} MB for commit"
                    f" {boot.asked.sha[:12]}; print one number per run"
                )

    def _result(self, boot: _Boot) -> tuple[BootResult, str | None]:
        seconds = time.monotonic() - boot.began
        if boot.timed_out:
            result = command_result.CommandResult(failed=f"CMD did not end within {boot.limit:g} s")
        else:
            try:
                result = command_result.read(
                    boot.child.returncode, _text(boot.out), _text(boot.err), self.command.pattern
                )
            except RunError as error:
                if not boot.asked.control:
                    raise RunError(
                        f"commit {boot.asked.sha[:12]}: {error} (output:"
                        f" {boot.out.with_suffix('')}.out, .err)"
                    ) from None
                result = command_result.CommandResult(failed=str(error))
        asked, links = boot.asked, self.command.links
        tree = self.state / f"tree-{boot.slot}"
        untestable = result.untestable
        if asked.control and untestable:  # the control, not the commit
            result, untestable = command_result.CommandResult(failed=untestable), None
        booted = BootResult(
            part=asked.part,
            sha=asked.sha,
            k=asked.k,
            phase=asked.phase,
            values=result.values,
            failed=result.failed,
            untestable=untestable,
            at=round(boot.at, 3),
            seconds=round(seconds, 3),
            layout=asked.layout,
            control=asked.control,
            unvaried=links.without_effect(tree, asked.built_in)
            if links and result.values
            else None,
            image=self._image(tree) if result.values else "",
        )
        return booted, result.warning

    def _image(self, tree: Path) -> str:
        """SHA-256 of the file that CMD builds; "" without one."""
        if self.command.image is None:
            return ""
        path = (tree if self.command.checkout else Path()) / self.command.image
        if path.is_file():  # a pipe would never end
            with contextlib.suppress(OSError), path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        raise RunError(f"--image {self.command.image} is no file after CMD; give what CMD builds")

    def _no_start(self, error: OSError, asked: BootRequest) -> str:
        name = self.command.argv[0]
        if (
            self.command.checkout
            and not os.path.isabs(name)
            and "/" in name
            and isinstance(error, FileNotFoundError)
        ):
            return (
                f"{name} does not exist in commit {asked.sha[:12]}; with --checkout, CMD starts in"
                " the checked-out commit; give an absolute path"
            )
        return f"{name} cannot be started: {error.strerror}"


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(limits.COMMAND_BYTES).decode(errors="replace")
