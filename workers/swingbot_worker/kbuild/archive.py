"""List the members of an archive without an external program, because the archive is untrusted.

The format is that of ar(5) as written by GNU binutils: an 8-byte magic, then headers of 60 bytes,
each followed by its data. In a thin archive, only the table of long names and the indexes have
data. Pure except for reading the file.
"""

from __future__ import annotations

import re
from pathlib import Path

from swingbot_worker import limits
from swingbot_worker.kbuild.elf import NotAnObject

_MAGIC, _THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER = 60
_INDEXES = (b"/", b"/SYM64/")


def members(path: Path) -> list[str]:
    """Return the members' names as stored. Those of a thin archive are relative to its directory.

    Raises NotAnObject or OSError.
    """
    if path.stat().st_size > limits.ARCHIVE_MEMBER_BYTES:
        raise NotAnObject(f"{path} is larger than any archive of a kernel")
    data = path.read_bytes()
    if data[:8] not in (_MAGIC, _THIN):
        raise NotAnObject(f"{path} is not an archive")
    member_names, names, place = [], b"", 8
    while place < len(data):
        header = data[place : place + _HEADER]
        size = re.fullmatch(rb"([0-9]{1,10}) *", header[48:58])
        if len(header) < _HEADER or header[58:] != b"`\n" or size is None:
            raise NotAnObject(f"{path} is a damaged archive")
        name, start = header[:16].rstrip(b" "), place + _HEADER
        if name == b"//":
            names = data[start : start + int(size[1])]
        elif name not in _INDEXES:
            member_names.append(_name(name, names).decode(errors="replace"))
        inside = name == b"//" or name in _INDEXES or data[:8] == _MAGIC
        place = start + (int(size[1]) + 1 & ~1 if inside else 0)
    return member_names


def _name(short: bytes, names: bytes) -> bytes:
    """Return a member's name.

    One longer than 15 bytes is `/` and its offset in the table of long names.
    """
    place = re.fullmatch(rb"/([0-9]{1,12})(?::[0-9]+)? */?", short)
    return (
        short.removesuffix(b"/") if place is None else names[int(place[1]) :].partition(b"/\n")[0]
    )
