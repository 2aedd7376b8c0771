"""Which files a diff reads: what it costs to apply it is known before that begins. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Lines of a hunk begin with other characters, but for a removed line "-- ": the name after it is
# that of no file, which costs nothing.
_HEADER: Final = re.compile(
    rb"^(?:(?P<git>diff --git )|(?P<from>(?:copy|rename) (?:from|old) )|(?P<old>--- )"
    rb"|(?P<to>(?:copy|rename) (?:to|new) )|(?P<new>\+\+\+ )|(?P<hunk>@@ ))(?P<rest>[^\n]*)",
    re.MULTILINE,
)
_ESCAPE: Final = re.compile(rb"\\([0-7]{3}|.)")
_LETTERS: Final = {letter: code for code, letter in enumerate(b"abtnvfr", 7)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedFile:
    """One file of a diff: its possible names before and after, and the length of its part of the
    diff in bytes.
    """

    before: frozenset[bytes]
    after: frozenset[bytes]
    length: int


class _FilePart:
    """The part of a diff about one file, from `start` on."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.before: set[bytes] = set()
        self.after: set[bytes] = set()
        self.heading: set[bytes] = set()
        self.in_hunks = False

    def note(self, line: re.Match[bytes]) -> None:
        rest = line["rest"]
        if line["git"]:  # the only line with the name if nothing but the mode changes
            half = len(rest) // 2
            self.heading = {_stripped(rest[:half]), _stripped(rest[half + 1 :])}
        elif line["from"]:
            self.before.add(_name(rest))
        elif line["old"]:
            self.before.add(_stripped(rest))
        elif line["to"]:
            self.after.add(_name(rest))
        elif line["new"]:
            self.after.add(_stripped(rest))
        else:
            self.in_hunks = True

    def ended(self, end: int) -> TouchedFile:
        return TouchedFile(
            before=frozenset(self.before or self.heading),
            after=frozenset(self.after or self.heading),
            length=end - self.start,
        )


def touched_files(diff: bytes) -> Iterator[TouchedFile]:
    """Yield the files of a diff as `diff_of` returns it, in their order."""
    part: _FilePart | None = None
    for line in _HEADER.finditer(diff):
        if line["git"] or part is None or (line["old"] and part.in_hunks):
            if part is not None:
                yield part.ended(line.start())
            part = _FilePart(line.start())
        part.note(line)
    if part is not None:
        yield part.ended(len(diff))


def _stripped(word: bytes) -> bytes:
    """Return the name without its first directory, as `-p1`."""
    return _name(word).partition(b"/")[2]


def _name(word: bytes) -> bytes:
    """Return the name that git writes as `word`, which may be quoted as in C."""
    if not word.startswith(b'"'):
        return word.partition(b"\t")[0]
    return _ESCAPE.sub(_character, word[1:].rpartition(b'"')[0])


def _character(escape: re.Match[bytes]) -> bytes:
    letter = escape[1]
    if len(letter) == 3:
        return bytes([int(letter, 8) & 255])
    return bytes([_LETTERS.get(letter[0], letter[0])])
