"""Write cpio archives ("newc"), which the kernel unpacks as its initial root file system. Pure."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One member; `content` is a link's target or a file's content, `mode` has the file type."""

    path: str
    mode: int
    content: bytes = b""


def directory(path: str) -> Entry:
    return Entry(path, stat.S_IFDIR | 0o755)


def file(path: str, content: bytes, *, executable: bool = False) -> Entry:
    return Entry(path, stat.S_IFREG | (0o755 if executable else 0o644), content)


def link(path: str, target: str) -> Entry:
    return Entry(path, stat.S_IFLNK | 0o777, target.encode())


def archive(entries: Iterable[Entry]) -> bytes:
    """Return the archive of `entries`, which must have parents first.

    Times, owners and inode numbers are fixed, so equal entries give equal archives. The length is a
    multiple of 4 bytes, so that another archive can follow, as the kernel requires.
    """
    out = bytearray()
    for number, entry in enumerate((*entries, Entry("TRAILER!!!", 0)), start=1):
        name = entry.path.lstrip("/").encode() + b"\0"
        # ino, mode, uid, gid, nlink, mtime, filesize, 4 device numbers, namesize, check
        # (Documentation/driver-api/early-userspace/buffer-format.rst)
        fields = (number, entry.mode, 0, 0, 1, 0, len(entry.content), 0, 0, 0, 0, len(name), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += bytes(-len(out) % 4) + entry.content
        out += bytes(-len(out) % 4)
    return bytes(out)


def with_parents(entries: Iterable[Entry]) -> list[Entry]:
    """Return `entries` sorted by path, with missing parent directories.

    The last of equal paths wins.
    """
    wanted = {entry.path.strip("/"): entry for entry in entries}
    for path in list(wanted):
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            parent = "/".join(parts[:depth])
            wanted.setdefault(parent, directory(parent))
    return [wanted[path] for path in sorted(wanted)]
