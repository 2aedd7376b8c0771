"""Which files a diff reads: what it costs to apply it is known before that begins. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class TouchedFile:
    """One file of a diff: its possible names before and after, and the length of its part of the
    diff in bytes.
    """

    start: int
    length: int = 0
    before: set[bytes] = field(default_factory=set)
    after: set[bytes] = field(default_factory=set)
    heading: frozenset[bytes] = frozenset()
    in_hunks: bool = False


def touched_files(diff: bytes) -> Iterator[TouchedFile]:
    """Yield the files of a diff as `diff_of` returns it, in their order."""
    file: TouchedFile | None = None
    for line in _HEADER.finditer(diff):
        if line["git"] or file is None or (line["old"] and file.in_hunks):
            if file is not None:
                yield _ended(file, line.start())
            file = TouchedFile(line.start())
        _note(file, line)
    if file is not None:
        yield _ended(file, len(diff))


def _ended(file: TouchedFile, end: int) -> TouchedFile:
    file.length = end - file.start
    file.before = file.before or set(file.heading)
    file.after = file.after or set(file.heading)
    return file


def _note(file: TouchedFile, line: re.Match[bytes]) -> None:
    rest = line["rest"]
    if line["git"]:  # the only line with the name if nothing but the mode changes
        half = len(rest) // 2
        file.heading = frozenset({_stripped(rest[:half]), _stripped(rest[half + 1 :])})
    elif line["from"]:
        file.before.add(_name(rest))
    elif line["old"]:
        file.before.add(_stripped(rest))
    elif line["to"]:
        file.after.add(_name(rest))
    elif line["new"]:
        file.after.add(_stripped(rest))
    else:
        file.in_hunks = True


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
