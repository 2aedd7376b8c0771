"""SMBIOS tables for tests (DMTF DSP0134): firmware, memory modules and the end of the table."""

from __future__ import annotations

import struct

END = struct.pack("<BBH", 127, 4, 0xFF) + b"\0\0"


def memory_device(megabytes: int | None, speed: int = 2933) -> bytes:
    """A slot with a module of this size and speed (MT/s), empty for None."""
    size, extended = megabytes or 0, 0
    if size >= 0x7FFF:
        size, extended = 0x7FFF, size
    fields = struct.pack(
        "<HHHHHBBBBBHHBBBBBIH",
        *(0x1000, 0xFFFE, 72, 64, size),  # array, errors, widths, size
        *(0x09, 0, 1, 2, 0x1A, 0x80),  # DIMM, set, locators, DDR4, detail
        *(speed if megabytes else 0, 0, 0, 0, 0, 0),  # speed, maker, serial, asset, part, rank
        *(extended, speed if megabytes else 0),
    )
    return struct.pack("<BBH", 17, 4 + len(fields), 0x1100) + fields + b"DIMM_A1\0BANK 0\0\0"


def table(*devices: bytes) -> bytes:
    """A table with these memory devices."""
    firmware = struct.pack("<BBH", 0, 24, 0) + bytes(20) + b"maker\0version\0\0"
    return b"".join([firmware, *devices, END])
