"""The hunks of a diff, each with the functions that it changes. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_HUNK: Final = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@ ?(.*)")
_WORD: Final = re.compile(r"\w+")
_FIRST: Final = re.compile(r"[A-Za-z_]")
_NAME: Final = re.compile(r"\b(?P<name>[A-Za-z_]\w{0,180}) ?\(")
_CHARACTERS: Final = 500  # of a line in which a function's name is looked for
_COMMENT: Final = ("*", "/*", "//")
# SYSCALL_DEFINE3(open, ...) defines __do_sys_open and others, DEFINE_...(x) no function.
_SYSCALL: Final = re.compile(r"(?:COMPAT_)?SYSCALL_DEFINE\d\((?P<name>\w{1,100})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """`lines` begin with the header; `functions` are those whose lines it adds or removes, `words`
    what these lines name.
    """

    path: str
    lines: tuple[str, ...]
    functions: frozenset[str]
    words: frozenset[str]


def hunks_of(diff: str) -> Iterator[Hunk]:
    """Yield the hunks in order; what stands before the first file is passed over."""
    path, lines, at = "", diff.split("\n"), 0
    while at < len(lines):
        line = lines[at]
        if line.startswith(("--- ", "+++ ")) and line[4:] != "/dev/null":
            path = line[4:].partition("/")[2]
        header = _HUNK.match(line) if path else None
        end = _end(lines, at + 1, header) if header else at + 1
        if header:
            body = lines[at:end]
            yield Hunk(
                path=path,
                lines=tuple(body),
                functions=_changed(header[3], body[1:]),
                words=frozenset(
                    word
                    for line in body[1:]
                    if line[:1] in ("+", "-")
                    for word in _WORD.findall(line)
                ),
            )
        at = end


def touching(hunks: Sequence[Hunk], name: str) -> list[Hunk]:
    """Return the hunks that change a function, else those whose changed lines name it: a variable,
    or a macro that makes it.
    """
    own = [hunk for hunk in hunks if name in hunk.functions]
    return own or [hunk for hunk in hunks if name in hunk.words]


def calls_in(hunk: Hunk) -> dict[str, set[str]]:
    """Return what each function calls after the change, by what stands before a parenthesis."""
    found: dict[str, set[str]] = {}
    for name, line in _by_function("", [one for one in hunk.lines[1:] if one[:1] != "-"]):
        if not line[1:].lstrip().startswith(_COMMENT):
            found.setdefault(name, set()).update(_NAME.findall(line[1 : 1 + _CHARACTERS]))
    return found


def _end(lines: list[str], at: int, header: re.Match[str]) -> int:
    """Return the place behind a hunk: it has as many lines of each side as its header says."""
    old, new = (1 if count is None else int(count) for count in header.groups()[:2])
    while at < len(lines) and (old > 0 or new > 0 or lines[at].startswith("\\")):
        mark = lines[at][:1]
        old -= mark in ("-", " ", "")
        new -= mark in ("+", " ", "")
        at += 1
    return at


def _changed(heading: str, body: Sequence[str]) -> frozenset[str]:
    """Return the functions with a line added or removed."""
    return frozenset(name for name, line in _by_function(heading, body) if line[:1] in ("+", "-"))


def _by_function(heading: str, body: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines of functions, each with its function's name; `heading` names the one that the
    body begins in. A line in the first column begins a function or ends it.
    """
    name = _begun(heading) or ""
    for line in body:
        begun = _begun(text := line[1:])
        name = name if begun is None else begun
        if name:
            yield name, line
        if text.startswith("}"):
            name = ""


def _begun(text: str) -> str | None:
    """Return the function that a line of a source begins, "" for another beginning in its first
    column; None if it goes on with what was there.
    """
    line = text.rstrip()
    if not _FIRST.match(line) or (line.endswith((":", ",")) and "(" not in line):
        return None
    if line.endswith(";"):
        return ""
    if call := _SYSCALL.match(line):
        return f"__do_sys_{call['name']}"
    match = _NAME.search(line[:_CHARACTERS])
    return match["name"] if match else None
