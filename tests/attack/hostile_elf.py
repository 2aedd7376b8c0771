"""ELF files that are small on disk and large in memory."""

from __future__ import annotations

import struct


def long_names(length: int, symbols: int) -> bytes:
    """Return an x86-64 object whose `symbols` share one name of `length` bytes."""
    names = b"\0.strtab\0.symtab\0.shstrtab\0"
    strings = b"\0" + b"A" * length + b"\0"
    table = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, 8) * symbols
    starts = [64]
    for part in (strings, table, names):
        starts.append(starts[-1] + len(part))
    sections = [
        _section(0, 0, 0, 0),
        _section(1, 3, starts[0], len(strings)),
        _section(9, 2, starts[1], len(table), link=1, entry=24),
        _section(17, 3, starts[2], len(names)),
    ]
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    counts = (1, 62, 1, 0, 0, starts[3], 0, 64, 0, 0, 64, len(sections), 3)
    head = ident + struct.pack("<HHIQQQIHHHHHH", *counts)
    return head + strings + table + names + b"".join(sections)


def _section(
    name: int, kind: int, start: int, size: int, *, link: int = 0, entry: int = 0
) -> bytes:
    return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, start, size, link, 0, 1, entry)
