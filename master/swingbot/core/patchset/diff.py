"""Extract the unified diff from a text, in linear time.

Hunks are read by the line counts in their headers, as `git apply` does. A signature or a note that
looks like a diff is thus not part of one, and a removed line "- " does not start a signature.
"""

from __future__ import annotations

import io
import re
from itertools import pairwise
from typing import Final

from swingbot.core.patchset.model import SeriesError
from swingbot.core.text.plain import cut

_HUNK: Final = re.compile(rb"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_EXTENDED: Final = (
    b"old mode ",
    b"new mode ",
    b"deleted file mode ",
    b"new file mode ",
    b"copy from ",
    b"copy to ",
    b"rename from ",
    b"rename to ",
    b"rename old ",
    b"rename new ",
    b"similarity index ",
    b"dissimilarity index ",
    b"index ",
)
_STRUCTURE: Final = re.compile(rb"^(?:diff --git |\+\+\+ |@@ -\d)[^\n]*\n", re.MULTILINE)
_FILE_DIFF: Final = re.compile(rb"^diff --git ", re.MULTILINE)
_BREAK: Final = re.compile(rb"^(?:diff -|Index: |--- \S|---[ \t\r]*$)", re.MULTILINE)


def cut_off(text: bytes) -> tuple[bytes, bytes]:
    """Return the text up to the notes or the diff, and the rest; splits where `git mailinfo`
    does."""
    end = _BREAK.search(text)
    return (text, b"") if end is None else (text[: end.start()], text[end.start() :])


def unix_lines(text: bytes) -> bytes:
    """Remove the CR of each line of a file's diff if git's own lines in it have one.

    These have a CR only if the text was converted, so the CR of a file's own lines is kept. Text
    before the first diff follows that diff.
    """
    starts = [found.start() for found in _FILE_DIFF.finditer(text)][1:]
    cuts = [0, *starts, len(text)]
    return b"".join(_unix_lines(text[i:j]) for i, j in pairwise(cuts))


def _unix_lines(text: bytes) -> bytes:
    first = _STRUCTURE.search(text)
    return text.replace(b"\r\n", b"\n") if first and first[0].endswith(b"\r\n") else text


def has_diff(text: bytes) -> bool:
    """Return True if `text` contains a diff, even one that cannot be applied."""
    return (
        re.search(rb"^(?:diff --(?:git|cc|combined) |@@ -\d|GIT binary patch)", text, re.M)
        is not None
    )


def diff_of(text: bytes) -> bytes:
    """Return all file diffs in `text`, concatenated; empty if there is none.

    Raises SeriesError for a binary patch, a combined diff of a merge, and a truncated hunk.
    """
    if not has_diff(text):
        return b""
    reader = _DiffReader()
    for line in io.BytesIO(text if text.endswith(b"\n") else text + b"\n"):
        reader.line(line)
    return reader.end()


class _DiffReader:
    """Processes lines; `held` are possible header lines of a file."""

    def __init__(self) -> None:
        self.out: list[bytes] = []
        self.held: list[bytes] = []
        self.file = b""
        self.old = self.new = 0  # remaining lines of the hunk
        self.in_file = False

    def line(self, line: bytes) -> None:
        if self.old or self.new:
            self._in_hunk(line)
        elif line.startswith(b"\\ ") and self.in_file:
            self.out.append(line)
        else:
            self._outside(line)

    def end(self) -> bytes:
        if self.old or self.new:
            raise SeriesError(_broken_off(self.file))
        self._take_header()
        return b"".join(self.out)

    def _in_hunk(self, line: bytes) -> None:
        sign = line[:1]
        self.old -= sign in (b" ", b"-", b"\n", b"\r")
        self.new -= sign in (b" ", b"+", b"\n", b"\r")
        if sign not in (b" ", b"-", b"+", b"\\", b"\n", b"\r") or self.old < 0 or self.new < 0:
            raise SeriesError(_broken_off(self.file))
        self.out.append(line)

    def _outside(self, line: bytes) -> None:
        if line.startswith(b"diff --git "):
            self._take_header()
            self.held, self.file, self.in_file = [line], line[11:], False
        elif line.startswith((b"diff --cc ", b"diff --combined ")):
            raise SeriesError(
                "it has the combined diff of a merge, which cannot be applied;"
                " send the commits of the branch"
            )
        elif self._is_binary(line):
            raise SeriesError(
                f"the patch of {_name(self.file)} is binary; only text patches are accepted"
            )
        elif self.held and self.held[0].startswith(b"diff --git ") and line.startswith(_EXTENDED):
            self.held.append(line)
        elif line.startswith(b"--- "):
            while self.held and self.held[-1].startswith((b"--- ", b"+++ ")):
                self.held.pop()
            self.held.append(line)
            self.in_file = False
        elif line.startswith(b"+++ ") and self.held and self.held[-1].startswith(b"--- "):
            self.held.append(line)
            self.file = line[4:]
        elif line.startswith(b"@@ -"):
            self._hunk(line)
        else:
            self._take_header()
            self.in_file = False

    def _is_binary(self, line: bytes) -> bool:
        """Return True if the line is git's binary patch, or its note about one, below a file
        header.
        """
        return line.startswith(b"GIT binary patch") or (
            line.startswith(b"Binary files ")
            and line.rstrip().endswith(b" differ")
            and bool(self.held)
        )

    def _take_header(self) -> None:
        """Keep a header without a hunk if it has a mode, a rename or an empty file."""
        held, self.held = self.held, []
        if held and held[0].startswith(b"diff --git ") and len(held) > 1:
            self.out += [line for line in held if not line.startswith((b"--- ", b"+++ "))]

    def _hunk(self, line: bytes) -> None:
        if self.held and self.held[-1].startswith(b"+++ "):
            self.out += self.held
            self.held, self.in_file = [], True
        if not self.in_file:
            return
        header = _HUNK.match(line)
        if header is None:
            raise SeriesError(_broken_off(self.file))
        self.old, self.new = (1 if given is None else int(given) for given in header.groups())
        self.out.append(line)


def _name(line: bytes) -> str:
    text = line.decode("utf-8", "replace").strip().partition("\t")[0]
    return cut(text.rpartition(" b/")[2].removeprefix("b/"), 120) or "a file"


def _broken_off(file: bytes) -> str:
    return (
        f"the diff of {_name(file)} ends within a hunk:"
        " the mailer wrapped or cut its lines; send it with `git send-email` or as an attachment"
    )
