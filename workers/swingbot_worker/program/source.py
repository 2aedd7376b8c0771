"""Read a program's source, an untrusted archive or checkout, into a tree of regular files.

This module runs nothing from the source and calls no external program. It creates only directories
and regular files below a new directory, so that no name leads outside, and refuses everything else.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, Protocol

from swingbot_worker import limits

_PART: Final = re.compile(r"[^\x00-\x1f\x7f/]{1,200}")
_CHUNK: Final = 1 << 18
# Compiled files, which make would treat as up to date.
_COMPILED: Final = (b"\x7fELF", b"!<arch>\n", b"!<thin>\n")


class BadSource(Exception):
    """This source cannot be built; the message is one sentence with the reason."""


@dataclass(slots=True)
class ProgramSource:
    """A source tree: its path, its digest, and its commit if the origin records one."""

    root: Path
    sha256: str
    commit: str | None
    left_out: int  # number of binaries and objects that were skipped


def take_in(given: Path, target: Path) -> ProgramSource:
    """Copy the source at `given`, an archive or a directory, into the new directory `target`.

    Raises BadSource; `target` may then contain a part of the source.
    """
    tree = _Tree(target)
    commit = _take_directory(given, tree) if given.is_dir() else _take_archive(given, tree)
    root = _top(target)
    if not tree.files:
        raise BadSource(f"{given} contains no files")
    return ProgramSource(root=root, sha256=digest(root), commit=commit, left_out=tree.left_out)


def digest(root: Path) -> str:
    """Return the SHA-256 over names, modes and contents: equal for a checkout and its archive."""
    whole = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        content, mode = path.read_bytes(), path.stat().st_mode & 0o100 != 0
        whole.update(f"{path.relative_to(root).as_posix()}\0{mode:d}\0{len(content)}\0".encode())
        whole.update(content)
    return whole.hexdigest()


def _top(target: Path) -> Path:
    """Return the source directory: `target`, or its only subdirectory, as in most archives."""
    inside = list(target.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else target


@dataclass(slots=True)
class _Tree:
    """The tree under construction, with its limits."""

    target: Path
    files: int = 0
    size: int = 0
    left_out: int = 0

    def add(self, name: str, size: int, executable: bool, content: IO[bytes]) -> None:
        """Add one file of `size` bytes. Raises BadSource."""
        path = _place(name)
        self.files += 1
        self.size += size
        if size > limits.PROGRAM_FILE_BYTES:
            raise BadSource(
                f"{name!r} has {size} bytes; the limit for a source file is"
                f" {limits.PROGRAM_FILE_BYTES}"
            )
        if self.size > limits.PROGRAM_BYTES:
            raise BadSource(f"it unpacks to more than {limits.PROGRAM_BYTES >> 20} MiB")
        if self.files > limits.PROGRAM_FILES:
            raise BadSource(f"it has more than {limits.PROGRAM_FILES} files")
        data = content.read(size)
        if len(data) != size:
            raise BadSource(f"{name!r} is truncated")
        if data.startswith(_COMPILED):
            self.left_out += 1
            return
        self._write(path, name, data, 0o755 if executable else 0o644)

    def _write(self, path: PurePosixPath, name: str, data: bytes, mode: int) -> None:
        place = self.target / path
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            out = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
        except (FileExistsError, NotADirectoryError) as error:
            raise BadSource(f"{name!r} occurs twice, or as a file and as a directory") from error
        with os.fdopen(out, "wb") as file:
            file.write(data)


def _place(name: str) -> PurePosixPath:
    """Return a member's path in the tree. Raises BadSource for a name that leads outside."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise BadSource(f"{name[:200]!r} leads outside its directory")
    if len(path.parts) > limits.PROGRAM_DEPTH:
        raise BadSource(f"{name[:200]!r} is more than {limits.PROGRAM_DEPTH} directories deep")
    if not path.parts or not all(_PART.fullmatch(part) for part in path.parts):
        raise BadSource(f"{name[:200]!r} is not a valid name of a source file")
    return path


# --- archives --------------------------------------------------------------------------------


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Limited(io.RawIOBase):
    """Reads `file`; raises BadSource beyond limits.PROGRAM_BYTES plus headers."""

    def __init__(self, file: _Readable) -> None:
        self._file, self._left = file, limits.PROGRAM_BYTES + limits.PROGRAM_FILES * 4096

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, _CHUNK) if size >= 0 else _CHUNK)
        self._left -= len(data)
        if self._left < 0:
            raise BadSource(f"it unpacks to more than {limits.PROGRAM_BYTES >> 20} MiB")
        return data


def _plain(file: IO[bytes]) -> _Readable:
    """Return `file` decompressed. tarfile could detect the format, but reads before the limit."""
    head = file.read(512)
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if head.startswith(b"BZh"):
        return bz2.BZ2File(file)
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.LZMAFile(file)
    if head[257:262] == b"ustar":
        return file
    raise BadSource(
        "it is not a tar archive, plain or compressed by gzip, bzip2 or xz;"
        " unpack it and give the directory"
    )


def _take_archive(given: Path, tree: _Tree) -> str | None:
    """Unpack `given` and return the commit that `git archive` wrote into its header."""
    try:
        with given.open("rb") as file:
            return _take_members(_plain(file), tree)
    except (
        tarfile.TarError,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        ValueError,
        OverflowError,
        RecursionError,
        OSError,
    ) as error:
        raise BadSource(f"{given} cannot be read as an archive ({error})") from error


def _take_members(plain: _Readable, tree: _Tree) -> str | None:
    limited: IO[bytes] = _Limited(plain)  # type: ignore[assignment]
    count = 0
    with tarfile.open(fileobj=limited, mode="r|", errors="strict") as archive:
        while (member := archive.next()) is not None:
            archive.members = []  # type: ignore[attr-defined]
            count += 1
            if count > 2 * limits.PROGRAM_FILES:
                raise BadSource(f"it has more than {limits.PROGRAM_FILES} files")
            if member.isdir():
                _place(member.name)
                continue
            if not member.isreg() or member.issparse():
                raise BadSource(
                    f"{member.name[:200]!r} is {_kind(member)}; only regular files are accepted"
                )
            content = archive.extractfile(member)
            assert content is not None  # a regular file
            tree.add(member.name, member.size, bool(member.mode & 0o100), content)
        return _commit(archive.pax_headers.get("comment", ""))


def _kind(member: tarfile.TarInfo) -> str:
    if member.issym() or member.islnk():
        return f"a link to {member.linkname[:200]!r}"
    return (
        "a device or pipe"
        if member.isdev()
        else "a sparse file"
        if member.issparse()
        else "special"
    )


# --- directories -----------------------------------------------------------------------------


def _take_directory(given: Path, tree: _Tree) -> str | None:
    """Copy `given` without its .git and return the checked-out commit, if there is one."""
    for path, name in _walk(given):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise BadSource(
                f"{path} cannot be read as a regular file ({error.strerror}); links are not "
                "followed"
            ) from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise BadSource(f"{path} is not a regular file; only regular files are accepted")
            tree.add(name, status.st_size, bool(status.st_mode & 0o100), file)
    return _checked_out(given)


def _walk(given: Path) -> Iterator[tuple[Path, str]]:
    def failed(error: OSError) -> None:
        raise BadSource(f"{error.filename} cannot be read ({error.strerror})")

    for place, directories, names in os.walk(given, onerror=failed):
        directories[:] = sorted(name for name in directories if name != ".git")
        links = [name for name in directories if Path(place, name).is_symlink()]
        for name in sorted([*links, *(name for name in names if name != ".git")]):
            yield Path(place, name), str(Path(place, name).relative_to(given))


def _checked_out(given: Path) -> str | None:
    """Return HEAD's commit without running git, whose configuration could start programs."""
    git = given / ".git"
    try:
        head = (git / "HEAD").read_text()[:300].strip()
        if head.startswith("ref: "):
            name = _place(head.removeprefix("ref: "))
            loose = git / name
            head = loose.read_text()[:100] if loose.is_file() else _packed(git, str(name))
    except (OSError, UnicodeDecodeError, BadSource):
        return None
    return _commit(head)


def _packed(git: Path, name: str) -> str:
    lines = (git / "packed-refs").read_text().splitlines()
    return next((line.partition(" ")[0] for line in lines if line.endswith(f" {name}")), "")


def _commit(text: str) -> str | None:
    return match[0] if (match := re.fullmatch(r"[0-9a-f]{40}", text.strip())) else None
