"""Convert code and data of one object to a form that depends only on the source's meaning.

The assembler writes distances into code, and the compiler writes numbers into names, so the bytes
of equal functions differ when another part of their file changes. The normal form blanks each
reference and records its target by name and offset, or by content for an unnamed constant. It also
blanks line numbers. See docs/kernel-builds.md.
"""

from __future__ import annotations

import bisect
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from swingbot_jobs.kernel_diff.record import SymbolRecord
from swingbot_worker.kbuild.elf import (
    FUNC,
    NOTYPE,
    OBJECT,
    SHF_ALLOC,
    SHF_MERGE,
    SHF_STRINGS,
    UNDEFINED,
    Elf,
    Relocation,
    Section,
    Symbol,
)

# Relocation type -> width of its field in bytes. Types that are not listed are 4 bytes wide.
_WIDTHS = {1: 8, 24: 8, 27: 8, 12: 2, 13: 2, 14: 1, 15: 1}
# PC32, PLT32, GOTPCREL, PC16, PC8, PC64, GOTPCRELX, REX_GOTPCRELX
_PC_RELATIVE = frozenset((2, 4, 9, 13, 15, 24, 41, 42))

# Numbers that compilers and kernel macros append: __key.7, __UNIQUE_ID_ddebug123,
# __initcall__kmod_slub__312_5043_init.
_NUMBERS = re.compile(r"\.[0-9]+|(?<=__)[0-9]+_[0-9]+(?=_)")
_COUNTED = re.compile(r"^__UNIQUE_ID_|^__addressable_|^__already_done|^___once_key")
_CLONE = re.compile(r"\.(?:constprop|isra|part|llvm|localalias|lto_priv)\b")

# Data about the time, host and configuration of the build, which is compared elsewhere or not at
# all.
_STAMPS = frozenset(
    ("linux_banner", "linux_proc_banner", "init_uts_ns", "vermagic", "kernel_config_data")
)
# Alternative and out-of-line code, which is part of the functions that it belongs to.
_PATCHES = (".altinstr_replacement", ".altinstr_aux")
# Tables that affect the code at the addresses they list, and the number of references per entry,
# the address first.
_EXCEPTION = (
    12  # bytes of an entry of __ex_table; since Linux 5.17 with two references, before with three
)
_TABLES = {".altinstructions": 2, "__jump_table": 3, "__ex_table": 2, ".static_call_sites": 2}
_UNCOMPARED = (
    *_PATCHES,
    ".altinstructions",
    "__ex_table",
    "__bug_table",
    "__dyndbg",
    "alloc_tags",
    ".printk_index",
    ".modinfo",
    ".discard",
    "__jump_table",
    ".static_call_sites",
    "__mcount_loc",
    ".orc_unwind",
    ".note",
)
_WHOLE = (".initcall", ".con_initcall")  # the order of initcalls: pointers without a symbol size

# References that the assembler resolves within a section: call, jmp and jcc with a 32-bit distance,
# jmp with an 8-bit distance, and lea relative to the next instruction. A short jcc would match by
# chance too often.
_SHORT = re.compile(rb"(?=(\xeb)(.))", re.DOTALL)
_DISTANCE = re.compile(
    rb"(?=([\xe8\xe9]|\x0f[\x80-\x8f]|[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d])(.{4}))",
    re.DOTALL,
)
# mov of a 32-bit immediate to an argument register.
_ARGUMENT = re.compile(rb"(?=([\xbe\xbf\xba\xb9]|\x41[\xb8\xb9])(.{4}))", re.DOTALL)
_SOURCE_FILE = re.compile(rb"[\w./+-]+\.(?:c|h|S|rs)")
# such as lockdep's name of a timer, "mm/memcontrol.c:647"
_SOURCE_LINE = re.compile(rb"([\w./+-]+\.(?:c|h|S|rs)):[0-9]+")
_LONGEST_NAME = 512  # of a file name; also limits the search in strings
# variables that hold the name of a source file
_FILE_SYMBOLS = frozenset(("_acpi_module_name",))
_LINE_NEARBY = 24  # bytes between a file name and its line number in the arguments of one call
_LAST_LINE = 100_000
# Padding of gas and of linkers, and code that is never reached.
_NOPS = (
    rb"(?:\x66{0,9}\x90|\x66{0,9}\x2e?\x0f\x1f"
    rb"(?:\x00|\x40\x00|\x44\x00\x00|\x80\x00{4}|\x84\x00{5})|\xcc|\x00)*"
)
_PADDING, _PADDING_BEHIND = re.compile(_NOPS), re.compile(_NOPS + rb"\Z")
_MOST_PADDING = 256  # bytes after code that are checked for padding
_MOST_CONSTANT = 4096  # bytes of an unnamed constant that are read
_MOST_CONSTANTS = 5000  # per function
_DEEPEST = 3  # constants that point to constants


def normal_parts(elf: Elf) -> tuple[list[SymbolRecord], list[SymbolRecord]]:
    """Return (code, data) of an object: one part for each function and each variable.

    Code without a sized symbol, as in assembler files, is one part per section, with the section's
    name in parentheses.
    """
    form = _Form(elf)
    code, data = [], []
    for section in elf.sections:
        if not section.flags & SHF_ALLOC or section.name.startswith(_UNCOMPARED):
            continue
        spans = list(form.spans(section))
        if section.code:
            code += [
                form.part(section, start, end, normal_name(name)) for start, end, name in spans
            ]
            code += form.rest(section, [(start, end) for start, end, _ in spans])
        else:
            data += [
                form.part(section, start, end, normal_name(name))
                for start, end, name in spans
                if name not in _STAMPS
            ]
            if section.name.startswith(_WHOLE) and not spans:
                data.append(form.part(section, 0, section.size, f"({section.name})"))
    return code, data


def normal_name(name: str) -> str:
    """Return a symbol's name without the numbers that depend on the rest of its file."""
    name = _NUMBERS.sub("", name)
    return name.rstrip("0123456789") if _COUNTED.match(name) else name


@dataclass(slots=True)
class _References:
    """The references of one part. Names are numbered in the order of their first use."""

    names: dict[str, int] = field(default_factory=dict)
    constants: list[bytes] = field(default_factory=list)
    looked_at: int = 0

    def number(self, name: str) -> int:
        return self.names.setdefault(name, len(self.names))


@dataclass(frozen=True, slots=True)
class _Target:
    """The target of a reference: an offset from a symbol, or into a section without one."""

    name: str | None
    offset: int
    section: Section | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A table's entry about one address in code."""

    place: int  # offset into the section of the code
    table: str
    data: bytes  # of the entry, with references blanked
    targets: tuple[_Target, ...]


class _Form:
    def __init__(self, elf: Elf) -> None:
        self._elf = elf
        self._named: dict[int, list[Symbol]] = {}
        for symbol in elf.symbols:
            if (
                symbol.kind in (NOTYPE, OBJECT, FUNC)
                and symbol.name
                and not symbol.name.startswith(".L")
                and 0 < symbol.section < len(elf.sections)
            ):
                self._named.setdefault(symbol.section, []).append(symbol)
        for symbols in self._named.values():
            symbols.sort(
                key=lambda one: (
                    one.value,
                    -one.size,
                    one.kind == NOTYPE,
                    one.binding == 0,
                    one.name,
                )
            )
        self._starts = {
            index: sorted({symbol.value for symbol in symbols})
            for index, symbols in self._named.items()
        }
        self._first = {
            index: {symbol.value: symbol for symbol in reversed(symbols)}
            for index, symbols in self._named.items()
        }
        self._entries = self._all_entries()
        self._met: dict[int, list[int]] | None = None

    def spans(self, section: Section) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, name) of each sized symbol, and only the first of several aliases."""
        for start in self._starts.get(section.index, ()):
            symbol = self._first[section.index][start]
            if symbol.size and start + symbol.size <= section.size:
                yield start, start + symbol.size, symbol.name

    def rest(self, section: Section, covered: list[tuple[int, int]]) -> list[SymbolRecord]:
        """Return the parts of a code section that no symbol covers, except for padding."""
        parts, reached = [], 0
        for start, end in [*covered, (section.size, section.size)]:
            if start > reached:
                first, last = _unpadded(section.data, reached, start)
                if first < last:
                    parts.append(self.part(section, first, last, f"({section.name})"))
            reached = max(reached, end)
        return parts

    def part(self, section: Section, start: int, end: int, name: str) -> SymbolRecord:
        if section.empty:
            return SymbolRecord(name, end - start, "", "", ())
        references = _References()
        shape = self._shape(section, start, end, references, depth=0)
        constants = _digest(b"\0".join(references.constants)) if references.constants else ""
        return SymbolRecord(name, end - start, _digest(shape), constants, tuple(references.names))

    def _shape(
        self, section: Section, start: int, end: int, references: _References, depth: int
    ) -> bytes:
        """Return the bytes with references blanked, then one line for each reference."""
        data = bytearray(section.data[start:end])
        places = self._places(section, start, end)
        notes, files = [], []
        for offset, width, target in places:
            at = offset - start
            data[at : at + width] = bytes(min(width, end - offset))
            notes.append(b"%d %d " % (at, width) + self._note(target, references, depth))
            if self._names_a_file(target):
                files.append(at)
        entries = self._entries.get(section.index, [])
        first, last = (
            bisect.bisect_left(entries, place, key=lambda one: one.place) for place in (start, end)
        )
        for entry in entries[first:last]:
            references_text = b" ".join(
                self._note(target, references, depth) for target in entry.targets
            )
            notes.append(
                b"%s %d %s %s"
                % (
                    entry.table.encode(),
                    entry.place - start,
                    entry.data.hex().encode(),
                    references_text,
                )
            )
        if section.code or depth:
            _blank_lines(data, files, section.code)
        return bytes(data) + b"\n" + b"\n".join(notes)

    def _places(self, section: Section, start: int, end: int) -> list[tuple[int, int, _Target]]:
        """Return (offset, width, target) of each reference by relocation or by distance."""
        places = []
        taken: set[int] = set()
        for one in section.relocations_of(start, end):
            width = _WIDTHS.get(one.kind, 4)
            places.append((one.offset, width, self._target(section, one)))
            taken.update(range(one.offset, one.offset + width))
        if section.code:
            places += [
                place for place in self._distances(section, start, end) if place[0] not in taken
            ]
            places.sort(key=lambda place: place[0])
        return places

    def _distances(
        self, section: Section, start: int, end: int
    ) -> Iterator[tuple[int, int, _Target]]:
        """Yield calls and jumps to other functions of the section, which have no relocation."""
        firsts = self._first.get(section.index, {})
        for pattern in (_DISTANCE, _SHORT):
            for match in pattern.finditer(section.data, start, end):
                goal = match.end(2) + int.from_bytes(match[2], "little", signed=True)
                if not start <= goal < end and goal in firsts:
                    yield match.start(2), len(match[2]), _Target(_callee(firsts[goal].name), 0)

    def _target(self, section: Section, one: Relocation) -> _Target:
        symbol = self._elf.symbols[one.symbol]
        offset = one.addend
        if one.kind in _PC_RELATIVE and section.code:
            offset += 4 + _immediate_after(section.data, one.offset)
        named = (
            symbol.name
            and symbol.kind in (NOTYPE, OBJECT, FUNC)
            and not symbol.name.startswith(".L")
        )
        if named or symbol.section == UNDEFINED or symbol.section >= len(self._elf.sections):
            return _Target(_callee(symbol.name), offset)
        return self._within(self._elf.sections[symbol.section], symbol.value + offset)

    def _within(self, section: Section, offset: int) -> _Target:
        """Return the target at an offset, relative to the symbol that covers it, if any."""
        starts = self._starts.get(section.index, [])
        after = bisect.bisect_right(starts, offset)
        for start in reversed(starts[max(after - 2, 0) : after]):
            symbol = self._first[section.index][start]
            if offset == start or offset < start + symbol.size:
                return _Target(_callee(symbol.name), offset - start)
        return _Target(None, offset, section)

    def _note(self, target: _Target, references: _References, depth: int) -> bytes:
        if target.name is not None:
            return b"%d+%d" % (references.number(target.name), target.offset)
        assert target.section is not None
        references.constants.append(
            self._constant(target.section, target.offset, references, depth)
        )
        return b"constant"

    def _constant(
        self, section: Section, offset: int, references: _References, depth: int
    ) -> bytes:
        """Return the content at an address without a symbol, or the section's name.

        The content is a string, a constant or a jump table.
        """
        references.looked_at += 1
        plain = section.code and section.name not in _PATCHES
        if (
            section.empty
            or plain
            or depth >= _DEEPEST
            or references.looked_at > _MOST_CONSTANTS
            or not 0 <= offset < len(section.data)
        ):
            return section.name.encode()
        if section.flags & SHF_STRINGS:
            text = self._string(section, offset)
            return _SOURCE_LINE.sub(rb"\1", text) if len(text) < _LONGEST_NAME else text
        end = (
            offset + section.entry_size
            if section.flags & SHF_MERGE and section.entry_size
            else self._end_of(section, offset)
        )
        return self._shape(section, offset, end, references, depth + 1)

    def _names_a_file(self, target: _Target) -> bool:
        if target.section is None:
            return target.name in _FILE_SYMBOLS
        return bool(_SOURCE_FILE.fullmatch(self._string(target.section, target.offset)))

    def _string(self, section: Section, offset: int) -> bytes:
        if not section.flags & SHF_STRINGS:
            return b""
        start = max(offset, 0)
        end = section.data.find(b"\0", start, start + _MOST_CONSTANT)
        return section.data[start : end if end >= 0 else start + _MOST_CONSTANT]

    def _end_of(self, section: Section, offset: int) -> int:
        """Return the end of a constant without a size.

        That is the next referenced offset, without the padding before it.
        """
        if self._met is None:
            self._met = self._all_targets()
        met = self._met.get(section.index, [])
        after = bisect.bisect_right(met, offset)
        limit = min(met[after] if after < len(met) else section.size, offset + _MOST_CONSTANT)
        filled = offset + len(section.data[offset:limit].rstrip(b"\0"))
        return max(
            [
                filled,
                *(
                    one.offset + _WIDTHS.get(one.kind, 4)
                    for one in section.relocations_of(offset, limit)[-1:]
                ),
            ]
        )

    def _all_entries(self) -> dict[int, list[_Entry]]:
        """Return the table entries of each code section, sorted by address."""
        by_section: dict[int, list[_Entry]] = {}
        for section in self._elf.sections:
            each = _TABLES.get(section.name, 0)
            if section.name == "__ex_table" and section.size >= _EXCEPTION:
                each = len(section.relocations) * _EXCEPTION // section.size
            for first in range(0, len(section.relocations), each) if each else ():
                group, following = (
                    section.relocations[first : first + each],
                    section.relocations[first + each : first + each + 1],
                )
                where, place = self._place(group[0])
                if where is not None:
                    end = following[0].offset if following else section.size
                    targets = tuple(self._target(section, one) for one in group[1:])
                    by_section.setdefault(where, []).append(
                        _Entry(place, section.name, _blanked(section, group, end), targets)
                    )
        return {
            index: sorted(entries, key=lambda one: (one.place, one.table, one.data))
            for index, entries in by_section.items()
        }

    def _place(self, one: Relocation) -> tuple[int | None, int]:
        """Return (section, offset) of a table's reference, relative to the start of its field."""
        symbol = self._elf.symbols[one.symbol]
        known = symbol.section != UNDEFINED and symbol.section < len(self._elf.sections)
        return (symbol.section if known else None), symbol.value + one.addend

    def _all_targets(self) -> dict[int, list[int]]:
        met: dict[int, set[int]] = {index: set(starts) for index, starts in self._starts.items()}
        for section in self._elf.sections:
            for one in section.relocations:
                target = self._target(section, one)
                if target.section is not None:
                    met.setdefault(target.section.index, set()).add(target.offset)
        return {index: sorted(offsets) for index, offsets in met.items()}


def _unpadded(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return a range without the padding at its start and end."""
    before = _PADDING.match(data, start, end)
    first = before.end() if before else start
    tail = max(first, end - _MOST_PADDING)
    behind = _PADDING_BEHIND.search(data, tail, end)
    return first, behind.start() if behind else end


def _blanked(section: Section, group: list[Relocation], end: int) -> bytes:
    start = group[0].offset
    data = bytearray(section.data[start:end])
    for one in group:
        width = _WIDTHS.get(one.kind, 4)
        data[one.offset - start : one.offset - start + width] = bytes(width)
    return bytes(data)


def _callee(name: str) -> str:
    """Return the name of a reference's target; a clone has the name of its original function."""
    return _CLONE.sub("", normal_name(name))


def _immediate_after(code: bytes, offset: int) -> int:
    """Return the number of instruction bytes after a 32-bit displacement at `offset`.

    Distances are relative to the end of the instruction. Only instructions with an operand relative
    to the instruction pointer (ModRM with mod 0 and r/m 5) and an immediate have such bytes: x86's
    groups 1 and 2, mov, test, imul, bt.
    """
    if offset < 2 or code[offset - 1] & 0xC7 != 0x05:
        return 0
    opcode, before, register = (
        code[offset - 2],
        code[offset - 3] if offset > 2 else 0,
        code[offset - 1] >> 3 & 7,
    )
    if opcode in (0xC0, 0xC1) and before == 0x0F:  # xadd
        return 0
    wide = 2 if before == 0x66 else 4
    if (
        opcode in (0x80, 0x83, 0xC6, 0xC0, 0xC1, 0x6B)
        or (opcode == 0xBA and before == 0x0F)
        or (opcode == 0xF6 and register < 2)
    ):
        return 1
    return wide if opcode in (0x81, 0xC7, 0x69) or (opcode == 0xF7 and register < 2) else 0


def _blank_lines(data: bytearray, files: list[int], code: bool) -> None:
    """Blank line numbers.

    In code, that is a number in the arguments next to the name of a source file; in data, the eight
    bytes after the name.
    """
    for at in files:
        if not code:
            data[at + 8 : at + 16] = bytes(len(data[at + 8 : at + 16]))
            continue
        first = max(at - _LINE_NEARBY, 0)
        near = [
            match.start(2)
            for match in _ARGUMENT.finditer(bytes(data), first, min(at + _LINE_NEARBY, len(data)))
            if _is_line(match[2])
        ]
        if near:
            line = min(near, key=lambda offset: abs(offset - at))
            data[line : line + 4] = bytes(4)


def _is_line(field_bytes: bytes) -> bool:
    return 0 < int.from_bytes(field_bytes, "little") < _LAST_LINE


def _digest(data: bytes) -> str:
    """Return a digest of 48 bits, which is enough to compare two versions of one symbol."""
    return hashlib.blake2b(data, digest_size=6).hexdigest()
