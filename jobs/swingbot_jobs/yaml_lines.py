"""YAML that remembers its lines: what job files and meta.yaml are read with.

Scalars keep the text they were written with (`300s`, `10`, `0x10`, `yes`): what a value means is
said by the parameter it belongs to, not by YAML. Files come from outside, so size, depth and number of
values are limited, and a key that stands twice is an error.

A line `#line 7 "base.yaml"` says that what follows stood in line 7 of that file, as in C: that is how a text with
other files in it (`include.py`) keeps telling where something was written.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import yaml

MAX_CHARACTERS = 64 * 1024  # YAML is read at some 30 KB a second
MAX_VALUES = (
    20_000  # aliases count each time they are used: a few lines of them can stand for billions
)
MAX_DEPTH = 20
# Plain scalars that YAML 1.1 takes for a number, a truth or a date and writes back in another way: 010, 1_000, 1.50, 12:30, yes, :name.
_NUMBER: Final = re.compile(
    r"[-+]?(?:0[xXbBoO][0-9a-fA-F_,]+|[0-9][0-9_,:]*|[0-9_,:]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9][0-9_,]*[eE][-+]?[0-9]+)|[-+]?\.(?:inf|nan)",
    re.IGNORECASE,
)
_CANONICAL: Final = re.compile(
    r"-?(?:0|[1-9][0-9]*)|-?(?:0\.[1-9]|[1-9][0-9]{0,11}\.[0-9])|-?(?:0\.[1-9]|[1-9][0-9]{0,11}\.[0-9])[0-9]{0,2}[1-9]"
)
_WORD: Final = re.compile(r"(?:true|false|yes|no|on|off)", re.IGNORECASE)
_OTHER: Final = re.compile(r":.*|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*")
_LINE: Final = re.compile(r'[ ]*#line ([0-9]{1,7}) "([^"\x00-\x1f]{1,255})"\s*')


class LineError(ValueError):
    """A file is wrong; the message begins with `file:line:`."""


class JobError(LineError):
    """A job file or an override is wrong; the message begins with `file:line:`."""


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value and the place it was written at; the content is text, None (empty or null), a tuple or a dict."""

    content: str | tuple[LocatedValue, ...] | dict[str, LocatedValue] | None
    line: int
    file: str = ""
    plain: bool = False  # a scalar without quotes: YAML gives it a type

    @property
    def where(self) -> str:
        """`file:line`, which every message begins with."""
        return f"{self.file}:{self.line}"

    @property
    def text(self) -> str | None:
        """The text of a scalar; None for anything else."""
        return self.content if isinstance(self.content, str) else None

    @property
    def ambiguous(self) -> bool:
        """Whether YAML reads this scalar as something that is written differently, so that two tools would give it two names."""
        text = self.text
        if text is None or not self.plain:
            return False
        number = _NUMBER.fullmatch(text) and not _CANONICAL.fullmatch(text)
        return bool(number or (_WORD.fullmatch(text) and text != "true") or _OTHER.fullmatch(text))

    @property
    def table(self) -> dict[str, LocatedValue] | None:
        """The entries of a table; None for anything else."""
        return self.content if isinstance(self.content, dict) else None

    @property
    def items(self) -> tuple[LocatedValue, ...]:
        """The items of a list; a lone value is a list of one, an empty one a list of none."""
        if isinstance(self.content, tuple):
            return self.content
        return () if self.content is None else (self,)


@dataclass(frozen=True, slots=True)
class LineOrigins:
    """Where each line of a text was written: `(file, line)`, lines of the text counted from 0."""

    places: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, text: str, file_name: str) -> LineOrigins:
        places, here, line = [], file_name, 0
        for written in text.split("\n"):
            line += 1
            places.append((here, line))
            marker = _LINE.fullmatch(written)
            if marker:
                here, line = marker[2], int(marker[1]) - 1
        return cls(tuple(places))

    def at(self, index: int) -> tuple[str, int]:
        """The place of that line; a text has an end, which an error may be at."""
        return self.places[min(index, len(self.places) - 1)]

    def where(self, index: int) -> str:
        return "{}:{}".format(*self.at(index))


def line_mark(file: str, line: int, after: int = 0, indent: str = "") -> str:
    """The line that says that what follows was written in line `line + after` of `file`."""
    return f'{indent}#line {line + after} "{file}"'


def read_documents(
    text: str, file_name: str, error: type[LineError] = LineError
) -> list[LocatedValue]:
    """Read all `---` documents of `text`; raise `error` with file and line when it is not YAML that we take."""
    if len(text) > MAX_CHARACTERS:
        raise error(
            f"{file_name}:1: the file has {len(text)} characters, more than {MAX_CHARACTERS}"
        )
    places = LineOrigins.of(text, file_name)
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.reader.ReaderError as problem:
        line = (
            text.count("\n", 0, max(problem.position, 0))
            if isinstance(problem.position, int)
            else 0
        )
        raise error(f"{places.where(line)}: has a character that YAML does not allow") from problem
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise error(
            f"{places.where(mark.line if mark else 0)}: not valid YAML: {problem.problem or problem.context}"
        ) from problem
    except (RecursionError, ValueError, yaml.YAMLError) as problem:
        raise error(f"{file_name}:1: not valid YAML, or nested too deeply") from problem
    reader = _Reader(places, error)
    return [reader.value(node, 0) for node in nodes if node is not None]


class _Reader:
    def __init__(self, places: LineOrigins, error: type[LineError]) -> None:
        self._places, self._error, self._left = places, error, MAX_VALUES

    def value(self, node: yaml.Node, depth: int) -> LocatedValue:
        file, line = self._places.at(node.start_mark.line)
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise self._error(
                f"{file}:{line}: too many values, or nested deeper than {MAX_DEPTH} levels"
            )
        if isinstance(node, yaml.ScalarNode):
            return LocatedValue(
                None if node.tag == "tag:yaml.org,2002:null" else str(node.value),
                line,
                file,
                node.style is None,
            )
        if isinstance(node, yaml.SequenceNode):
            return LocatedValue(
                tuple(self.value(item, depth + 1) for item in node.value), line, file
            )
        assert isinstance(node, yaml.MappingNode)
        return LocatedValue(self._table(node, depth), line, file)

    def _table(self, node: yaml.MappingNode, depth: int) -> dict[str, LocatedValue]:
        table: dict[str, LocatedValue] = {}
        for key_node, value_node in node.value:
            file, line = self._places.at(key_node.start_mark.line)
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(
                    f"{file}:{line}: a key must be plain text; put quotes around values with {{{{ }}}}"
                )
            key = str(key_node.value)
            first = table.get(key)
            # What was included may be set anew by the file that includes it, or by the next include: the last one counts.
            if first and first.file == file:
                raise self._error(
                    f"{file}:{line}: {key!r} stands twice, first in line {first.line}"
                )
            value = self.value(value_node, depth + 1)
            # An entry is where its key is: that is where someone looks for it.
            table[key] = LocatedValue(value.content, line, file, value.plain)
        return table


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when something known looks like `word`, else nothing."""
    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
