"""A file system of limited size for everything that an untrusted build writes.

Its size also limits what no directory listing shows: files that were unlinked while open, inodes,
space that is reserved. As root it is an ext4 image on a loop device, or a tmpfs where there are no
loop devices; elsewhere the operator names a directory on a file system of limited size.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from swingbot_worker import InfraError, process
from swingbot_worker.walls.limits import MIB, BuildLimits

SETTING: Final = "SWINGBOT_BUILD_SCRATCH"
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_SECONDS = 120.0
_INODE_BYTES = 256
# Directories, bitmaps and the blocks that ext4 keeps back: the space for data is at least the
# limit, and the guard stops a build that uses more.
_SPARE_BYTES = 4 * MIB
_KEPT_SHARE, _KEPT_BYTES = 0.02, 16 * MIB
# A file system of the operator's may be larger than the limit by its own metadata.
_LARGER = 1.05
_OPTIONS = "noatime,nosuid,nodev"

Kind = Literal["loop", "tmpfs", "directory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """Limit of a build's disk space on this host. `directory` is set for kind `directory` only."""

    kind: Kind
    directory: Path | None = None


class NoScratch(Exception):
    """This host cannot limit the space of a build; the message says what to add."""


def find(limits: BuildLimits) -> Scratch:
    """Return a way that works on this host, after trying it. Raises NoScratch."""
    named = os.environ.get(SETTING)
    if named:
        return _checked(Path(named), limits)
    if os.geteuid() != 0:
        raise NoScratch(
            "only root can mount a file system of limited size; set "
            f"{SETTING} to a directory on a tmpfs or volume of at most {limits.disk // MIB} MB"
        )
    reasons = []
    for scratch in (Scratch(kind="loop"), Scratch(kind="tmpfs")):
        try:
            with (
                tempfile.TemporaryDirectory(prefix="swingbot-disk-") as work,
                limited(scratch, Path(work) / "scratch", limits),
            ):
                return scratch
        except InfraError as error:
            reasons.append(str(error))
    raise NoScratch(
        f"{' '.join(reasons)} Give the worker loop devices (/dev/loop-control) or set {SETTING} to "
        f"a directory on a tmpfs or volume of at most {limits.disk // MIB} MB"
    )


def _checked(directory: Path, limits: BuildLimits) -> Scratch:
    if not directory.is_absolute() or not directory.is_dir():
        raise NoScratch(f"{SETTING} is {str(directory)[:200]!r}, which is not a directory")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise NoScratch(f"the worker cannot write to {directory} ({SETTING})")
    state = os.statvfs(directory)
    size = state.f_blocks * state.f_frsize
    if state.f_flag & os.ST_NOEXEC:
        raise NoScratch(f"{directory} ({SETTING}) is mounted noexec; a build runs what it compiles")
    if size > limits.disk * _LARGER:
        raise NoScratch(
            f"the file system of {directory} ({SETTING}) has {size // MIB} MB; give it a tmpfs or "
            f"volume of at most {limits.disk // MIB} MB, or raise SWINGBOT_BUILD_DISK_MB"
        )
    return Scratch(kind="directory", directory=directory)


@contextlib.contextmanager
def limited(scratch: Scratch, at: Path, limits: BuildLimits) -> Iterator[Path]:
    """Yield an empty directory whose content cannot exceed the limit; it is deleted afterwards.

    It is `at`, which must not exist, unless the operator named another directory. Raises
    InfraError.
    """
    if scratch.directory is not None:
        yield from _in_directory(scratch.directory, at.name)
        return
    at.mkdir(mode=0o755, parents=True)
    image = at.with_name(f"{at.name}.img")
    try:
        if scratch.kind == "loop":
            _make_image(image, limits)
            _run("mount", "-o", f"loop,{_OPTIONS},noinit_itable", str(image), str(at))
            (at / "lost+found").rmdir()
        else:
            size = f"size={min(limits.disk, limits.memory)},nr_inodes={limits.files}"
            _run("mount", "-t", "tmpfs", "-o", f"{size},mode=0755,{_OPTIONS}", "tmpfs", str(at))
        yield at
    finally:
        release(at)
        image.unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            at.rmdir()


def release(below: Path) -> None:
    """Unmount what is mounted at or below `below`, such as by a worker that died."""
    for point in reversed(_mount_points(below)):
        # lazily: what still holds a file of it keeps nothing else from being deleted
        if _output("umount", str(point)).rc != 0:
            _run("umount", "--lazy", str(point))


def _in_directory(directory: Path, name: str) -> Iterator[Path]:
    prefix = "swingbot-"
    for old in directory.glob(f"{prefix}*-*"):
        pid = old.name.removeprefix(prefix).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            shutil.rmtree(old, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=directory))
    try:
        (work / name).mkdir()
        yield work / name
    finally:
        _output("rm", "-rf", "--one-file-system", "--", str(work))


def _make_image(image: Path, limits: BuildLimits) -> None:
    files = max(1024, min(limits.files, limits.disk // 4096))
    kept = min(int(limits.disk * _KEPT_SHARE), _KEPT_BYTES) + _SPARE_BYTES
    size = limits.disk + kept + files * _INODE_BYTES
    image.unlink(missing_ok=True)
    descriptor = os.open(image, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)
    # no journal: nothing of it is ever mounted again
    _run(
        *("mkfs.ext4", "-q", "-F", "-m", "0", "-N", str(files), "-I", str(_INODE_BYTES)),
        *("-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1,nodiscard", str(image)),
    )


def _mount_points(below: Path) -> list[Path]:
    """Return the mount points at or below a directory, in the order of their mounting."""
    top = below.resolve()
    points = []
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        text = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), line.split(" ")[4])
        if Path(text).is_relative_to(top):
            points.append(Path(text))
    return points


def _output(*argv: str) -> process.Output:
    return process.output(list(argv), timeout=_SECONDS, env=_ENVIRONMENT)


def _run(*argv: str) -> None:
    done = _output(*argv)
    if done.rc != 0:
        raise InfraError(f"`{argv[0]}` failed: {done.text.strip()[-200:] or 'it took too long'}.")


@dataclass(frozen=True, slots=True)
class Used:
    """Usage of a file system: bytes and files, and whether it is full."""

    bytes: int
    files: int
    full: bool


def used(directory: Path) -> Used:
    """Return the use of the file system of `directory`, unlinked open files included."""
    state = os.statvfs(directory)
    return Used(
        bytes=(state.f_blocks - state.f_bfree) * state.f_frsize,
        files=state.f_files - state.f_ffree,
        full=state.f_bavail * state.f_frsize < MIB or (state.f_files > 0 and state.f_ffree == 0),
    )
