"""What all processes of a sandbox use together, looked at while they run: memory, processes, room on the disk, length of the log."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from swingbot_worker import process
from swingbot_worker.walls.limits import MIB, Limits

WATCH_SECONDS = 0.5
# Looking at the objects takes at most this share of the time.
_SHARE = 0.05
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_DU_SECONDS = 20.0
_EMPTY_SECONDS = 10.0
_MEMORY = re.compile(r"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$", re.MULTILINE)
_NAMESPACE = re.compile(rb'"pid-namespace": (\d+)')


class OverLimit(Exception):
    """The build used more than it may; the message says of what, and which setting gives more."""


@dataclass(slots=True)
class Guard:
    """Called about every WATCH_SECONDS while a sandbox runs; raises OverLimit, which ends the sandbox."""

    limits: Limits
    objects: Path | None  # measured; None: nothing to write to
    log: Path | None
    info: int  # descriptor of the pipe where bwrap names the sandbox's namespaces
    progress: Callable[[float], None] | None = None
    progress_seconds: float = 10.0
    _namespace: str | None = None
    _told: bytes = b""
    _progressed: float = 0.0
    _measured: float = field(default=0.0)  # of time.monotonic: when the objects are measured next

    def __call__(self, seconds: float) -> None:
        self._look_at_log()
        self._look_at_processes()
        if self.objects is not None and time.monotonic() >= self._measured:
            began = time.monotonic()
            self.look_at_objects(self.objects)
            self._measured = time.monotonic() + (time.monotonic() - began) / _SHARE
        if self.progress is not None and seconds - self._progressed >= self.progress_seconds:
            self._progressed = seconds
            self.progress(seconds)

    def namespace(self) -> str | None:
        """The sandbox's process namespace as /proc names it; None as long as bwrap has not told."""
        if self._namespace is None:
            with contextlib.suppress(BlockingIOError):
                self._told += os.read(self.info, 4096)
            if found := _NAMESPACE.search(self._told):
                self._namespace = f"pid:[{int(found[1])}]"
        return self._namespace

    def wait_until_empty(self) -> bool:
        """Wait until no process of the sandbox is left: the kernel ends them with its first one, but not in the same instant."""
        end = time.monotonic() + _EMPTY_SECONDS
        while any(self._members()):
            if time.monotonic() > end:
                return False
            time.sleep(0.005)
        return True

    def _members(self) -> Iterator[int]:
        namespace = self.namespace()
        if namespace is None:
            return
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    if os.readlink(f"/proc/{name}/ns/pid") == namespace and not _ended(name):
                        yield int(name)
                except OSError:  # it has just ended, or is somebody else's
                    continue

    def _look_at_processes(self) -> None:
        memory = count = 0
        for pid in self._members():
            count += 1
            try:
                status = Path(f"/proc/{pid}/status").read_text(errors="replace")
            except OSError:
                continue
            memory += sum(int(kilobytes) * 1024 for kilobytes in _MEMORY.findall(status))
        if memory > self.limits.memory:
            raise OverLimit(
                f"used {memory // MIB} MB of memory; it may use {self.limits.memory // MIB} (SWINGBOT_BUILD_MEMORY_MB)"
            )
        if count > self.limits.processes:
            raise OverLimit(
                f"ran {count} processes; it may run {self.limits.processes} (SWINGBOT_BUILD_PROCESSES)"
            )

    def _look_at_log(self) -> None:
        if self.log is not None and self.log.exists() and self.log.stat().st_size > self.limits.log:
            raise OverLimit(f"printed more than {self.limits.log // MIB} MB")

    def look_at_objects(self, objects: Path) -> None:
        used, files = room(objects)
        if used is None or files is None or used > self.limits.disk:
            what = "more files than can be counted" if used is None else f"{used // MIB} MB"
            raise OverLimit(
                f"wrote {what}; it may write {self.limits.disk // MIB} MB (SWINGBOT_BUILD_DISK_MB)"
            )
        if files > self.limits.files:
            raise OverLimit(f"made {files} files; it may make {self.limits.files}")


def _ended(pid: str) -> bool:
    """Whether the process only waits to be noticed by its parent; the first of a namespace gets there when all others are gone."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] in (b"Z", b"X")


def room(directory: Path, *, apparent: bool = False) -> tuple[int | None, int | None]:
    """(bytes on the disk, files) of `directory`, None where counting took too long; `apparent`: lengths instead of bytes on the disk.

    `du` does the counting: it gets to the end of any depth of directories. Files that vanish meanwhile are no error.
    """
    options = ["--apparent-size"] if apparent else []
    return _du([*options, "--block-size=1"], directory), _du(["--inodes"], directory)


def _du(options: list[str], directory: Path) -> int | None:
    done = process.output(
        ["du", "--summarize", "--one-file-system", *options, "--", directory],
        timeout=_DU_SECONDS,
        env=_ENVIRONMENT,
    )
    last = done.text.rstrip("\n").rpartition("\n")[2].split("\t")[0]
    return None if done.timed_out or not last.isdigit() else int(last)
