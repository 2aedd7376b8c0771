"""Reader of initramfs archives (cpio, "newc"). Pure.

Format: Documentation/driver-api/early-userspace/buffer-format.rst of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = 110  # bytes: a magic of 6 digits and 13 fields of 8
_FILE, _KIND = 0o100000, 0o170000


class NotAnArchive(ValueError):
    """The bytes are not a complete archive of this format."""


@dataclass(frozen=True, slots=True)
class CpioMember:
    """A plain file of an archive: offset and number of its bytes."""

    path: str
    mode: int
    offset: int
    size: int


def members(archive: bytes) -> Iterator[CpioMember]:
    """Return the plain files of one archive in its order. Raises NotAnArchive."""
    at = 0
    while True:
        try:
            if archive[at : at + 6] != b"070701":
                raise ValueError
            field = [int(archive[at + 6 + 8 * n : at + 14 + 8 * n], 16) for n in range(13)]
            mode, size, name_size = field[1], field[6], field[11]
            path = archive[at + _HEADER : at + _HEADER + name_size - 1].decode()
        except ValueError:
            raise NotAnArchive(f"at byte {at} no member of a cpio archive begins") from None
        if path == "TRAILER!!!":
            return
        begin = at + _HEADER + name_size
        begin += -begin % 4
        if begin + size > len(archive):
            raise NotAnArchive(f"{path[:100]!r} is cut off")
        if mode & _KIND == _FILE:
            yield CpioMember(path, mode & 0o777, begin, size)
        at = begin + size
        at += -at % 4
