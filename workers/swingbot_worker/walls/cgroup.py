"""A control group for each sandbox: all memory, kernel memory included, and all processes.

Limits of a process do not count what its kernel objects hold: data in sockets, inodes of a tmpfs,
page tables. A memory cgroup counts them. With version 2 of the interface the worker needs a
delegated cgroup (systemd: `Delegate=`) or root; with version 1 it needs root. In a container whose
cgroups are read-only, the container's own limits count. See docs/walls.md.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swingbot_worker import InfraError
from swingbot_worker.walls.limits import BuildLimits

PREFIX: Final = "swingbot-build-"
# Processes may not be in a version 2 group that has groups with controllers below it, so a worker
# in a delegated group first moves that group's processes here.
SUPERVISOR: Final = "swingbot-worker"
CONTROLLERS: Final = ("memory", "pids")
_REMOVE_SECONDS = 5.0
_ABANDONED_SECONDS = 60.0  # an empty group is older than that before it is removed
_MOVES = 20
# A version 1 group without a limit says 2^63 rounded down to a page.
_UNLIMITED = 1 << 60
# Enters the groups, whose directories are the first $1 arguments, and executes the rest.
_ENTER: Final = (
    'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1/cgroup.procs" || exit 125; shift; '
    'n=$((n - 1)); done; exec "$@"'
)

HOW_TO: Final = (
    "run the worker as root, or in a unit with Delegate=yes (systemd-run --user --scope "
    "--property=Delegate=yes COMMAND), or in a container with a limit on memory and processes "
    "(mem_limit and pids_limit)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parents:
    """The groups in which the worker can create one per sandbox; equal in version 2."""

    version: int
    memory: Path
    pids: Path

    @property
    def directories(self) -> tuple[Path, ...]:
        return tuple(dict.fromkeys((self.memory, self.pids)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """The worker's own group, which has limits but cannot have groups below it (a container).

    `memory_limit` is in bytes.
    """

    version: int
    memory: Path
    pids: Path
    memory_limit: int
    processes: int


class NoGroup(Exception):
    """This host has no usable cgroups; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """Number of times that a group hit a limit: processes killed for memory, refused forks."""

    killed: int = 0
    refused: int = 0


@dataclass(slots=True)
class ControlGroup:
    """The group of one sandbox, or the worker's own if there can be no other."""

    version: int
    memory: Path
    pids: Path
    created: tuple[Path, ...]
    before: Excess
    memory_limit: int  # bytes
    processes: int

    def entering(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs `argv` in this group."""
        if not self.created:
            return list(argv)
        return ["sh", "-c", _ENTER, "sh", str(len(self.created)), *map(str, self.created), *argv]

    def excess(self) -> Excess:
        """Return how often the group has been held at its limits since it was created."""
        now = _excess(self.version, self.memory, self.pids)
        return Excess(
            killed=now.killed - self.before.killed, refused=now.refused - self.before.refused
        )

    def peak(self) -> int | None:
        """Return the largest memory use in bytes, or None if this kernel does not record it."""
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        text = _read(self.memory / name)
        return int(text) if text.isdigit() else None


def find() -> Parents | Inherited:
    """Return how this host limits a sandbox. Raises NoGroup."""
    reasons = []
    for version in (2, 1):
        try:
            parents = _delegated() if version == 2 else _version_1()
            with _created(parents):
                return parents
        except (NoGroup, OSError) as error:
            reasons.append(f"version {version}: {error}")
    inherited = _inherited()
    if inherited is None:
        raise NoGroup("; ".join(reasons))
    return inherited


@contextlib.contextmanager
def group(control: Parents | Inherited, limits: BuildLimits) -> Iterator[ControlGroup]:
    """Create the group of one sandbox, with `limits`; remove it and all its processes afterwards.

    Raises InfraError.
    """
    if isinstance(control, Inherited):
        before = _excess(control.version, control.memory, control.pids)
        most = control.memory_limit, control.processes
        yield ControlGroup(control.version, control.memory, control.pids, (), before, *most)
        return
    try:
        with _created(control) as (memory, pids):
            _limit(control.version, memory, pids, limits)
            created = tuple(dict.fromkeys((memory, pids)))
            most = limits.memory, limits.processes
            yield ControlGroup(control.version, memory, pids, created, Excess(), *most)
    except NoGroup as error:
        raise InfraError(
            f"The cgroup of the build could not be set up ({error}); run `swingbot-worker walls` "
            "for details."
        ) from None


# -- creating groups


@contextlib.contextmanager
def _created(parents: Parents) -> Iterator[tuple[Path, Path]]:
    name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(6)}"
    made: list[Path] = []
    try:
        for parent in parents.directories:
            _remove_empty(parent)
            try:
                (parent / name).mkdir()
            except OSError as error:
                raise NoGroup(f"{parent} allows no group below it ({error.strerror})") from None
            made.append(parent / name)
        memory, pids = parents.memory / name, parents.pids / name
        for file in (memory / _LIMIT[parents.version], pids / "pids.max"):
            if not file.exists():
                raise NoGroup(f"{file.parent.parent} does not have the {file.name} of its groups")
        yield memory, pids
    finally:
        for directory in made:
            _remove(directory)


_LIMIT: Final = {1: "memory.limit_in_bytes", 2: "memory.max"}


def _limit(version: int, memory: Path, pids: Path, limits: BuildLimits) -> None:
    """Write the limits. Memory and swap together have the limit of memory."""
    try:
        if version == 2:
            (memory / "memory.max").write_text(f"{limits.memory}\n")
            (memory / "memory.oom.group").write_text("1\n")
            _write_if_there(memory / "memory.swap.max", "0\n")
        else:
            (memory / "memory.limit_in_bytes").write_text(f"{limits.memory}\n")
            _write_if_there(memory / "memory.memsw.limit_in_bytes", f"{limits.memory}\n")
        (pids / "pids.max").write_text(f"{limits.processes}\n")
    except OSError as error:
        raise NoGroup(f"{error.filename or memory}: {error.strerror}") from None


def _write_if_there(file: Path, text: str) -> None:
    if file.exists():
        file.write_text(text)


def _remove(directory: Path) -> None:
    """Kill the processes of a group and remove it. Raises NoGroup if it stays."""
    end = time.monotonic() + _REMOVE_SECONDS
    while True:
        try:
            directory.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > end:
                raise NoGroup(f"{directory} cannot be removed ({error.strerror})") from None
        _kill(directory)
        time.sleep(0.01)


def _kill(directory: Path) -> None:
    for pid in _processes(directory):
        with contextlib.suppress(OSError):
            os.kill(pid, 9)


def _processes(directory: Path) -> list[int]:
    return [int(word) for word in _read(directory / "cgroup.procs").split() if word.isdigit()]


def _remove_empty(parent: Path) -> None:
    """Remove the groups that workers left when they died.

    The worker of a group may live in another pid namespace: one that has processes stays, and one
    that was just created.
    """
    for directory in parent.glob(f"{PREFIX}*"):
        pid = directory.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with contextlib.suppress(OSError):
                if time.time() - directory.stat().st_mtime > _ABANDONED_SECONDS:
                    directory.rmdir()


# -- where groups can be created


@dataclass(frozen=True, slots=True)
class _Mount:
    root: str
    point: Path
    kind: str
    options: frozenset[str]


def _mounts() -> Iterator[_Mount]:
    for line in _read(Path("/proc/self/mountinfo")).splitlines():
        before, _, after = line.partition(" - ")
        words, rest = before.split(), after.split()
        if len(words) > 4 and rest and rest[0] in ("cgroup", "cgroup2"):
            options = frozenset(rest[-1].split(","))
            yield _Mount(words[3], Path(words[4].replace(r"\040", " ")), rest[0], options)


def _own_paths() -> Mapping[str, str]:
    """Return the worker's group in each hierarchy, by controller; '' is version 2."""
    lines = (line.split(":", 2) for line in _read(Path("/proc/self/cgroup")).splitlines())
    return {name: path for _, names, path in lines for name in names.split(",")}


def _own(controller: str) -> tuple[Path, _Mount] | None:
    """Return the directory of the worker's group; controller '' is version 2."""
    path = _own_paths().get(controller)
    for mount in _mounts():
        fits = mount.kind == ("cgroup" if controller else "cgroup2")
        if path is None or not fits or (controller and controller not in mount.options):
            continue
        if os.path.relpath(path, mount.root).startswith(".."):
            return mount.point, mount  # of a container: its own group is all that is mounted
        return mount.point / os.path.relpath(path, mount.root), mount
    return None


def _version_1() -> Parents:
    memory, pids = _own("memory"), _own("pids")
    if memory is None or pids is None:
        raise NoGroup("no memory and pids hierarchies are mounted")
    return Parents(version=1, memory=memory[0], pids=pids[0])


def _delegated() -> Parents:
    """Return the version 2 group below which this worker may create groups. Raises NoGroup."""
    here = _own("")
    if here is None:
        raise NoGroup("it is not mounted")
    own, mount = here
    available = _read(own / "cgroup.controllers").split()
    if not set(CONTROLLERS) <= set(available):
        raise NoGroup(f"{own} has no controllers {' and '.join(CONTROLLERS)}")
    if own.name == SUPERVISOR:
        own = own.parent
    if _is_ours(own):
        _enable(own, leaf=own / SUPERVISOR)
        return Parents(version=2, memory=own, pids=own)
    if os.geteuid() == 0 and not (mount.point / "cgroup.type").exists():
        _enable(mount.point, leaf=None)
        top = mount.point / "swingbot"
        top.mkdir(exist_ok=True)
        _enable(top, leaf=None)
        return Parents(version=2, memory=top, pids=top)
    raise NoGroup(f"{own} is not delegated to this worker")


def _is_ours(directory: Path) -> bool:
    """Return whether `directory` is delegated: a unit with Delegate=, or a container's root."""
    files = ("", "cgroup.procs", "cgroup.subtree_control")
    if not all(os.access(directory / name, os.W_OK) for name in files):
        return False
    if not (directory / "cgroup.type").exists():  # the root of the hierarchy
        return False
    return os.geteuid() != 0 or _own_paths().get("") == "/" or _marked(directory)


def _marked(directory: Path) -> bool:
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            return os.getxattr(directory, name) == b"1"
    return False


def _enable(directory: Path, *, leaf: Path | None) -> None:
    """Enable the controllers for the groups below `directory`.

    Its own processes move to `leaf` first, because no process may be in `directory` afterwards.
    """
    control = directory / "cgroup.subtree_control"
    if set(CONTROLLERS) <= set(_read(control).split()):
        return
    if leaf is not None:
        leaf.mkdir(exist_ok=True)
    for _ in range(_MOVES):  # a process may fork meanwhile
        for pid in _processes(directory) if leaf is not None else ():
            with contextlib.suppress(ProcessLookupError):
                (leaf or directory).joinpath("cgroup.procs").write_text(f"{pid}\n")
        try:
            control.write_text(" ".join(f"+{name}" for name in CONTROLLERS) + "\n")
            return
        except OSError as error:
            reason = error.strerror
    raise NoGroup(f"{control} refuses the controllers ({reason})")


def _inherited() -> Inherited | None:
    """Return the worker's own group if its memory and its processes have a limit."""
    unified = _own("")
    if unified is not None and (unified[0] / "memory.max").exists():
        version, memory, pids = 2, unified[0], unified[0]
    else:
        pair = _own("memory"), _own("pids")
        if pair[0] is None or pair[1] is None:
            return None
        version, memory, pids = 1, pair[0][0], pair[1][0]
    limit, processes = _read(memory / _LIMIT[version]), _read(pids / "pids.max")
    if not (limit.isdigit() and processes.isdigit()) or int(limit) >= _UNLIMITED:
        return None
    return Inherited(
        version=version,
        memory=memory,
        pids=pids,
        memory_limit=int(limit),
        processes=int(processes),
    )


# -- what happened in a group


def _excess(version: int, memory: Path, pids: Path) -> Excess:
    killed = memory / ("memory.events" if version == 2 else "memory.oom_control")
    return Excess(killed=_field(killed, "oom_kill"), refused=_field(pids / "pids.events", "max"))


def _field(file: Path, name: str) -> int:
    """Return the number after `name` in a file of such lines; 0 if it is missing."""
    for line in _read(file).splitlines():
        words = line.split()
        if len(words) == 2 and words[0] == name and words[1].isdigit():
            return int(words[1])
    return 0


def _read(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""
