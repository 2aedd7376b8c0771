"""The memory modules of a machine, from the SMBIOS table of its firmware. Pure.

Format: DMTF DSP0134, "Memory Device (Type 17)": offsets below are those of that table, in
little-endian order. The table is untrusted: what is malformed is ignored.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Final

# Prints the table in hexadecimal; root alone may read it, and a machine without one prints nothing.
SCRIPT: Final = r"""
say smbios "$(od -An -v -tx1 -N 65536 /sys/firmware/dmi/tables/DMI 2>/dev/null | tr -d ' \n')"
"""
HEX_CHARACTERS: Final = 2 * 65536
MOST: Final = 1024  # memory devices that are read
_HEX: Final = re.compile(r"(?:[0-9a-f]{2})+")
_DEVICE, _END = 17, 127  # types of structures
# Offsets of fields, and values with a meaning of their own.
_SIZE, _SPEED, _EXTENDED, _CONFIGURED = 0x0C, 0x15, 0x1C, 0x20
_UNKNOWN, _IS_EXTENDED = 0xFFFF, 0x7FFF


def described(smbios: str) -> str:
    """Return the modules, such as `8 of 16 slots: 8 x 32 GiB at 2933 MT/s`.

    `smbios` is the table in hexadecimal. Empty if it has no memory devices.
    """
    devices = list(_devices(smbios))
    modules = Counter(module for module in devices if module is not None)
    kinds = [f"{count} x {kind}" for kind, count in sorted(modules.items())]
    slots = f"{modules.total()} of {len(devices)} slots"
    return ": ".join(filter(None, (slots, " + ".join(kinds)))) if devices else ""


def _devices(smbios: str) -> Iterator[str | None]:
    """Yield size and speed of the module in each slot, None for an empty slot."""
    if not _HEX.fullmatch(smbios):
        return
    table, at, found = bytes.fromhex(smbios), 0, 0
    while at + 4 <= len(table) and found < MOST:
        kind, length = table[at], table[at + 1]
        end = table.find(b"\0\0", at + length)  # of the strings that follow
        if length < 4 or kind == _END or end < 0:
            return
        if kind == _DEVICE and length > _SPEED + 1:
            found += 1
            yield _module(table[at : at + length])
        at = end + 2


def _module(device: bytes) -> str | None:
    size, speed = _word(device, _SIZE), _word(device, _CONFIGURED) or _word(device, _SPEED)
    if size == 0:
        return None
    megabytes: float = size & 0x7FFF
    if size == _IS_EXTENDED and len(device) >= _EXTENDED + 4:
        megabytes = struct.unpack_from("<I", device, _EXTENDED)[0] & 0x7FFFFFFF
    elif size & 0x8000:
        megabytes /= 1024  # it is in KiB
    if size == _UNKNOWN:
        return "module of unknown size"
    module = f"{megabytes / 1024:g} GiB" if megabytes >= 1024 else f"{megabytes:g} MiB"
    return module if speed in (0, _UNKNOWN) else f"{module} at {speed} MT/s"


def _word(device: bytes, offset: int) -> int:
    """Return a field of two bytes; 0 if the structure is shorter."""
    return struct.unpack_from("<H", device, offset)[0] if len(device) >= offset + 2 else 0
