"""Monitor the total memory, processes, disk space and log size of a sandbox while it runs."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from swingbot_worker import process
from swingbot_worker.walls import disk
from swingbot_worker.walls.cgroup import ControlGroup
from swingbot_worker.walls.limits import MIB, BuildLimits

WATCH_SECONDS = 0.5
# Maximum share of the time that is spent on measuring the objects.
_SHARE = 0.05
_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_DU_SECONDS = 20.0
_BYTES = ["--block-size=1"]
_EMPTY_SECONDS = 10.0
_AROUND = "of the worker's container or unit"
# A page that several processes map counts once: each has its share of it.
_SHARES = re.compile(r"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$", re.MULTILINE)
_MEMORY = re.compile(r"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+) kB$", re.MULTILINE)
_NAMESPACE = re.compile(rb'"pid-namespace": (\d+)')


class OverLimit(Exception):
    """The build exceeded a limit; the message names the limit and the setting that raises it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowingCache:
    """A cache that a build may write to, with its size in bytes before the build."""

    directory: Path
    before: int

    @classmethod
    def at(cls, directory: Path) -> GrowingCache:
        """Measure `directory`."""
        return cls(directory=directory, before=_du(_BYTES, directory) or 0)


@dataclass(slots=True)
class Guard:
    """Measures a sandbox while it runs; raises OverLimit, which ends the sandbox.

    It is called about every WATCH_SECONDS.
    """

    limits: BuildLimits
    objects: Path | None  # the directory that is measured; None: no writable directory
    log: Path | None
    info: int  # descriptor of the pipe to which bwrap writes the sandbox's namespaces
    progress: Callable[[float], None] | None = None
    progress_seconds: float = 10.0
    group: ControlGroup | None = None  # None: only the processes are measured
    scratch: Path | None = None  # the operator's directory with the objects of several builds
    cache: GrowingCache | None = None  # a second writable directory, whose growth counts too
    _namespace: str | None = None
    _received: bytes = b""
    _progressed: float = 0.0
    _measured: float = field(default=0.0)  # on time.monotonic: when the objects are measured next

    def __call__(self, seconds: float) -> None:
        self.look_at_log()
        self.look_at_counts()
        self._look_at_processes()
        if self.objects is not None and time.monotonic() >= self._measured:
            began = time.monotonic()
            self.look_at_objects(self.objects, running=True)
            self._measured = time.monotonic() + (time.monotonic() - began) / _SHARE
        if self.progress is not None and seconds - self._progressed >= self.progress_seconds:
            self._progressed = seconds
            self.progress(seconds)

    def namespace(self) -> str | None:
        """Return the sandbox's PID namespace as in /proc, or None before bwrap has reported it."""
        if self._namespace is None:
            with contextlib.suppress(BlockingIOError):
                self._received += os.read(self.info, 4096)
            if match := _NAMESPACE.search(self._received):
                self._namespace = f"pid:[{int(match[1])}]"
        return self._namespace

    def wait_until_empty(self) -> bool:
        """Wait until all processes of the sandbox have exited. Returns False on timeout.

        The kernel kills them when the sandbox's first process exits, but not immediately.
        """
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
                except OSError:  # it has just exited, or is inaccessible
                    continue

    def _look_at_processes(self) -> None:
        members = list(self._members())
        count = len(members)
        # A cgroup of the build's own counts all memory exactly, and holds the build at the limit.
        grouped = self.group is not None and bool(self.group.created)
        memory = 0 if grouped else sum(map(_memory, members))
        if memory > self.limits.memory:
            raise OverLimit(
                f"used {memory // MIB} MB of memory; the limit is {self.limits.memory // MIB} MB "
                "(SWINGBOT_BUILD_MEMORY_MB)"
            )
        if count > self.limits.processes:
            raise OverLimit(
                f"ran {count} processes; the limit is {self.limits.processes} "
                "(SWINGBOT_BUILD_PROCESSES)"
            )

    def look_at_counts(self) -> None:
        """Raise OverLimit if the kernel held the build at a limit of its cgroup."""
        if self.group is None:
            return
        excess, own = self.group.excess(), self.group.created
        if excess.killed:
            most = self.group.memory_limit // MIB
            raise OverLimit(
                f"needed more than {most} MB of memory; the limit is {most} MB "
                f"({'SWINGBOT_BUILD_MEMORY_MB' if own else _AROUND})"
            )
        if excess.refused:
            most = self.group.processes
            raise OverLimit(
                f"needed more than {most} processes; the limit is {most} "
                f"({'SWINGBOT_BUILD_PROCESSES' if own else _AROUND})"
            )

    def look_at_log(self) -> None:
        if self.log is not None and self.log.exists() and self.log.stat().st_size > self.limits.log:
            raise OverLimit(f"printed more than {self.limits.log // MIB} MB")

    def look_at_objects(self, objects: Path, *, running: bool = False) -> None:
        """Raise OverLimit if the build wrote too much; while it is `running`, it holds files."""
        used, files = self._room(objects)
        if used is not None:
            used += self._grown() + (self._unlinked(objects) if running else 0)
        if used is None or files is None or used > self.limits.disk:
            what = "more files than can be counted" if used is None else f"{used // MIB} MB"
            raise OverLimit(
                f"wrote {what}; the limit is {self.limits.disk // MIB} MB (SWINGBOT_BUILD_DISK_MB)"
            )
        if files > self.limits.files:
            raise OverLimit(f"created {files} files; the limit is {self.limits.files}")

    def _grown(self) -> int:
        """Return by how many bytes the cache has grown."""
        if self.cache is None:
            return 0
        used = _du(_BYTES, self.cache.directory)
        return self.limits.disk + 1 if used is None else max(0, used - self.cache.before)

    def _unlinked(self, objects: Path) -> int:
        """Return the bytes of files without a name that the build holds open or mapped.

        A file system of the build's own counts them itself.
        """
        if os.path.ismount(objects):
            return 0
        places = (objects,) if self.cache is None else (objects, self.cache.directory)
        devices = {os.stat(place).st_dev for place in places}
        held: dict[tuple[int, int], int] = {}
        for pid in self._members():
            for state in _held(pid):
                if state.st_nlink == 0 and state.st_dev in devices and stat.S_ISREG(state.st_mode):
                    held[state.st_dev, state.st_ino] = state.st_blocks * 512
        return sum(held.values())

    def _room(self, objects: Path) -> tuple[int | None, int | None]:
        """Return (bytes, files) of the objects. Raises OverLimit if their file system is full."""
        alone = os.path.ismount(objects)
        if not alone and (self.scratch is None or not objects.is_relative_to(self.scratch)):
            return room(objects)
        used = disk.used(objects)
        if used.full:
            raise OverLimit(
                f"filled its file system with {used.bytes // MIB} MB in {used.files} files; "
                f"the limit is {self.limits.disk // MIB} MB (SWINGBOT_BUILD_DISK_MB)"
            )
        return (used.bytes, used.files) if alone else room(objects)


def _memory(pid: int) -> int:
    """Return the bytes of a process, with its share of pages that others map too; 0 once ended.

    A kernel that does not tell shares (before 5.4) counts shared pages for each process.
    """
    for file, fields in (("smaps_rollup", _SHARES), ("status", _MEMORY)):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/{file}").read_text(errors="replace")
            if sizes := fields.findall(text):
                return sum(int(kilobytes) * 1024 for kilobytes in sizes)
    return 0


def _held(pid: int) -> Iterator[os.stat_result]:
    """Yield the state of each file that a process has open or mapped."""
    for place in (f"/proc/{pid}/fd", f"/proc/{pid}/map_files"):
        with contextlib.suppress(OSError):
            for name in os.listdir(place):
                with contextlib.suppress(OSError):
                    yield os.stat(f"{place}/{name}")


def _ended(pid: str) -> bool:
    """Return whether the process is a zombie.

    The first process of a namespace becomes one after all others have exited.
    """
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] in (b"Z", b"X")


def room(directory: Path, *, apparent: bool = False) -> tuple[int | None, int | None]:
    """Return (bytes on disk, files) of `directory`; None for a value that took too long.

    `apparent` counts file lengths instead of bytes on disk. `du` does the counting, because it
    handles any directory depth. Files that disappear meanwhile are not an error.
    """
    options = ["--apparent-size"] if apparent else []
    return _du([*options, *_BYTES], directory), _du(["--inodes"], directory)


def _du(options: list[str], directory: Path) -> int | None:
    done = process.output(
        ["du", "--summarize", "--one-file-system", *options, "--", directory],
        timeout=_DU_SECONDS,
        env=_ENVIRONMENT,
    )
    last = done.text.rstrip("\n").rpartition("\n")[2].split("\t")[0]
    return None if done.timed_out or not last.isdigit() else int(last)
