"""Read sections, symbols, relocations and sizes of an ELF file.

Sizes are those that `nm` and `size` print.

pyelftools reads the headers. The long tables are unpacked in one pass, which is ten times as fast.
"""

from __future__ import annotations

import bisect
import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from swingbot_worker import limits

SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_MERGE, SHF_STRINGS, SHF_COMPRESSED = (
    0x1,
    0x2,
    0x4,
    0x10,
    0x20,
    0x800,
)
NOTYPE, OBJECT, FUNC, SECTION, FILE = 0, 1, 2, 3, 4
LOCAL, GLOBAL, WEAK = 0, 1, 2
UNDEFINED, ABSOLUTE, COMMON = 0, 0xFFF1, 0xFFF2
_SYMBOL, _RELOCATION = struct.Struct("<IBBHQQ"), struct.Struct("<QQq")


class NotAnObject(Exception):
    """This file is not a readable x86-64 ELF file; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """`offset` into the section that it modifies; `symbol` is an index into the symbol table."""

    offset: int
    kind: int  # R_X86_64_*
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class Symbol:
    name: str
    value: int
    size: int
    section: int
    kind: int
    binding: int


@dataclass(slots=True)
class Section:
    index: int
    name: str
    flags: int
    size: int
    entry_size: int
    empty: bool  # occupies no space in the file, as .bss
    data: bytes
    relocations: list[Relocation] = field(default_factory=list)

    @property
    def code(self) -> bool:
        return bool(self.flags & SHF_EXECINSTR)

    def relocations_of(self, start: int, end: int) -> list[Relocation]:
        """Return the relocations in the bytes from `start` to before `end`, in order."""
        first = bisect.bisect_left(self.relocations, start, key=lambda one: one.offset)
        last = bisect.bisect_left(self.relocations, end, key=lambda one: one.offset)
        return self.relocations[first:last]


@dataclass(frozen=True, slots=True)
class Elf:
    sections: list[Section]
    symbols: list[Symbol]

    def sizes(self) -> dict[str, int]:
        """Return the bytes of text, data and bss as binutils' `size` prints them.

        Constants count as text.
        """
        total = {"text": 0, "data": 0, "bss": 0}
        for section in self.sections:
            if section.flags & SHF_ALLOC:
                total[_berkeley(section)] += section.size
        return total

    def letters(self) -> Iterator[tuple[str, str, int]]:
        """Yield (nm's letter, name, size in bytes) of each symbol that `nm --size-sort` prints."""
        for symbol in self.symbols:
            if symbol.size and symbol.section != UNDEFINED and symbol.kind not in (SECTION, FILE):
                yield self._letter(symbol), symbol.name, symbol.size

    def _letter(self, symbol: Symbol) -> str:
        if symbol.binding == WEAK:
            return "V" if symbol.kind == OBJECT else "W"
        if symbol.section == COMMON:
            return "C"
        letter = (
            "a"
            if symbol.section >= len(self.sections)
            else _section_letter(self.sections[symbol.section])
        )
        return letter.upper() if symbol.binding == GLOBAL else letter


def _berkeley(section: Section) -> str:
    if section.code or not section.flags & SHF_WRITE:
        return "text"
    return "bss" if section.empty else "data"


def _section_letter(section: Section) -> str:
    if section.code:
        return "t"
    if section.empty:
        return "b"
    if section.flags & SHF_ALLOC:
        return "d" if section.flags & SHF_WRITE else "r"
    return "?" if section.flags & SHF_WRITE else "n"


def read_elf(path: Path) -> Elf:
    """Read an object file or a vmlinux. Raises NotAnObject or OSError."""
    try:
        # Mapped, so that an invalid offset in the file never looks like a disk error.
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            return _read(ELFFile(cast(IO[bytes], whole)), min(len(whole), limits.ELF_BYTES))
    except (
        ELFError,
        struct.error,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        OverflowError,
        AssertionError,
    ) as error:
        # pyelftools raises any of these for a damaged file.
        raise NotAnObject(
            f"{path} is not a readable x86-64 ELF file ({type(error).__name__}: {str(error)[:100]})"
        ) from None


def _read(elf: ELFFile, room: int) -> Elf:
    """Read an ELF file; at most `room` bytes of sections and tables."""
    if elf.elfclass != 64 or not elf.little_endian or elf["e_machine"] != "EM_X86_64":
        raise ValueError("it is for another architecture")
    sections, tables, symbols = [], [], []
    for index, header in enumerate(elf.iter_sections()):
        kind, empty = header["sh_type"], header["sh_type"] == "SHT_NOBITS"
        if header["sh_flags"] & SHF_COMPRESSED and (
            kind != "SHT_PROGBITS" or header["sh_flags"] & SHF_ALLOC
        ):
            raise ValueError("it has a compressed section that compilers do not write")
        wanted = header["sh_flags"] & SHF_ALLOC and not empty
        if wanted or kind in ("SHT_RELA", "SHT_SYMTAB"):
            room -= header["sh_size"]
        if room < 0:
            raise ValueError("its sections are longer than the file")
        data = header.data() if wanted else b""
        sections.append(
            Section(
                index,
                header.name,
                header["sh_flags"],
                header["sh_size"],
                header["sh_entsize"],
                empty,
                data,
            )
        )
        if kind == "SHT_RELA":
            tables.append(header)
        elif kind == "SHT_SYMTAB":
            if header["sh_size"] > limits.ELF_ENTRIES * _SYMBOL.size:
                raise ValueError("it has more symbols than a kernel")
            symbols = list(_symbols(header.data(), elf.get_section(header["sh_link"]).data()))
    for table in tables if elf["e_type"] == "ET_REL" else ():
        target = sections[table["sh_info"]]
        if table["sh_size"] > limits.ELF_ENTRIES * _RELOCATION.size:
            raise ValueError("it has more relocations than a kernel")
        if target.flags & SHF_ALLOC:
            relocations = [
                Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)
                for offset, info, addend in _RELOCATION.iter_unpack(table.data())
            ]
            if any(one.symbol >= len(symbols) or one.offset >= target.size for one in relocations):
                raise ValueError("it has a relocation without a target")
            target.relocations = sorted(relocations, key=lambda one: one.offset)
    return Elf(sections, symbols)


def _symbols(table: bytes, names: bytes) -> Iterator[Symbol]:
    room = limits.SYMBOL_NAMES_BYTES
    for name, info, _, section, value, size in _SYMBOL.iter_unpack(table):
        end = names.find(b"\0", name, name + limits.SYMBOL_NAME_BYTES + 1)
        if end < 0:
            raise ValueError(
                f"it has a symbol whose name is longer than {limits.SYMBOL_NAME_BYTES} bytes"
            )
        room -= end - name
        if room < 0:
            raise ValueError("the names of its symbols are longer than those of a kernel")
        text = names[name:end].decode(errors="replace")
        yield Symbol(text, value, size, section, info & 15, info >> 4)
