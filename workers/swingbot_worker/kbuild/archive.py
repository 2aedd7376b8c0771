"""The members of an archive, without a program that reads it: it may be anybody's. Pure but for reading the file.

The form is that of ar(5) as GNU binutils write it: after eight letters, headers of 60 bytes, each followed by its data, which a thin archive
has only for the table of long names and the indexes.
"""

from __future__ import annotations

import re
from pathlib import Path

from swingbot_worker.kbuild.elf import NotAnObject

_MAGIC, _THIN = b"!<arch>\n", b"!<thin>\n"
_HEADER = 60
_LONGEST = 256 << 20
_INDEXES = (b"/", b"/SYM64/")


def members(path: Path) -> list[str]:
    """Names as they stand in there: those of a thin archive are relative to its directory. Raises NotAnObject, or OSError."""
    if path.stat().st_size > _LONGEST:
        raise NotAnObject(f"{path} is longer than an archive of a kernel is")
    data = path.read_bytes()
    if data[:8] not in (_MAGIC, _THIN):
        raise NotAnObject(f"{path} is no archive")
    found, names, place = [], b"", 8
    while place < len(data):
        header = data[place : place + _HEADER]
        size = re.fullmatch(rb"([0-9]{1,10}) *", header[48:58])
        if len(header) < _HEADER or header[58:] != b"`\n" or size is None:
            raise NotAnObject(f"{path} is a damaged archive")
        name, start = header[:16].rstrip(b" "), place + _HEADER
        if name == b"//":
            names = data[start : start + int(size[1])]
        elif name not in _INDEXES:
            found.append(_name(name, names).decode(errors="replace"))
        inside = name == b"//" or name in _INDEXES or data[:8] == _MAGIC
        place = start + (int(size[1]) + 1 & ~1 if inside else 0)
    return found


def _name(short: bytes, names: bytes) -> bytes:
    """A name of more than 15 letters is `/` and its place in the table, where each ends with `/` and a new line."""
    place = re.fullmatch(rb"/([0-9]{1,12})(?::[0-9]+)? */?", short)
    return (
        short.removesuffix(b"/") if place is None else names[int(place[1]) :].partition(b"/\n")[0]
    )
