"""YAML reader with line numbers, for job files and meta.yaml.

Scalars keep their text (`300s`, `10`, `0x10`, `yes`): the parameter that a value
belongs to determines its type, not YAML. Files come from outside, so size, depth and number of
values are limited, and a duplicate key is an error.

A line `#line 7 "base.yaml"` says that the next line is line 7 of that file, as in C:
with these, a text with included files (`include.py`) keeps the original positions.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from swingbot_jobs import limits

# Plain scalars that YAML 1.1 reads as a number, a boolean or a date and prints differently:
# 010, 1_000, 1.50, 12:30, yes, :name.
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
    """A file is invalid; the message begins with `file:line:`."""


class JobError(LineError):
    """A job file or an override is invalid; the message begins with `file:line:`."""


@dataclass(frozen=True, slots=True, repr=False)
class LocatedValue:
    """A value and its position; the content is text, None (empty or null), a tuple or a dict."""

    content: str | tuple[LocatedValue, ...] | dict[str, LocatedValue] | None
    line: int
    file: str = ""
    plain: bool = False  # a scalar without quotes: YAML gives it a type

    def __repr__(self) -> str:
        return repr(self.content)

    @property
    def where(self) -> str:
        """Return `file:line`, the start of every message; line 0 is not known."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def text(self) -> str | None:
        """Return the text of a scalar; None for anything else."""
        return self.content if isinstance(self.content, str) else None

    @property
    def ambiguous(self) -> bool:
        """Return whether YAML prints this scalar differently, so that two tools would give it two
        names.
        """
        text = self.text
        if text is None or not self.plain:
            return False
        number = _NUMBER.fullmatch(text) and not _CANONICAL.fullmatch(text)
        return bool(number or (_WORD.fullmatch(text) and text != "true") or _OTHER.fullmatch(text))

    @property
    def table(self) -> dict[str, LocatedValue] | None:
        """Return the entries of a table; None for anything else."""
        return self.content if isinstance(self.content, dict) else None

    @property
    def items(self) -> tuple[LocatedValue, ...]:
        """Return the items of a list.

        A plain value is a list of one item, an empty value an empty list.
        """
        if isinstance(self.content, tuple):
            return self.content
        return () if self.content is None else (self,)


@dataclass(frozen=True, slots=True)
class LineOrigins:
    """Original position of each line of a text: `(file, line)`, with text lines counted from 0."""

    places: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, text: str, file_name: str) -> LineOrigins:
        places, file, line = [], file_name, 0
        for written in text.split("\n"):
            line += 1
            places.append((file, line))
            marker = _LINE.fullmatch(written)
            if marker:
                file, line = marker[2], int(marker[1]) - 1
        return cls(tuple(places))

    def at(self, index: int) -> tuple[str, int]:
        """Return the position of that line, which may be the end of the text."""
        return self.places[min(index, len(self.places) - 1)]

    def where(self, index: int) -> str:
        return "{}:{}".format(*self.at(index))


def line_mark(file: str, line: int, after: int = 0, indent: str = "") -> str:
    """Return the mark which says that the next line is line `line + after` of `file`."""
    return f'{indent}#line {line + after} "{file}"'


def read_documents(
    text: str, file_name: str, error: type[LineError] = LineError
) -> list[LocatedValue]:
    """Read all `---` documents of `text`.

    Raise `error` with file and line for YAML that is invalid or not supported.
    """
    import yaml  # here: settings, which are read first, are not YAML

    if len(text) > limits.YAML_CHARACTERS:
        raise error(
            f"{file_name}:1: the file has {len(text)} characters, more than"
            f" {limits.YAML_CHARACTERS}"
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
            f"{places.where(mark.line if mark else 0)}: not valid YAML:"
            f" {problem.problem or problem.context}"
        ) from problem
    except (RecursionError, ValueError, yaml.YAMLError) as problem:
        raise error(f"{file_name}:1: not valid YAML, or nested too deeply") from problem
    reader = _YamlReader(places, error)
    return [reader.value(node, 0) for node in nodes if node is not None]


class _YamlReader:
    def __init__(self, places: LineOrigins, error: type[LineError]) -> None:
        self._places, self._error, self._left = places, error, limits.YAML_VALUES

    def value(self, node: Any, depth: int) -> LocatedValue:
        file, line = self._places.at(node.start_mark.line)
        self._left -= 1
        if self._left < 0 or depth > limits.YAML_DEPTH:
            raise self._error(
                f"{file}:{line}: too many values, or nested deeper than {limits.YAML_DEPTH} levels"
            )
        if node.id == "scalar":
            return LocatedValue(
                None if node.tag == "tag:yaml.org,2002:null" else str(node.value),
                line,
                file,
                node.style is None,
            )
        if node.id == "sequence":
            return LocatedValue(
                tuple(self.value(item, depth + 1) for item in node.value), line, file
            )
        return LocatedValue(self._table(node, depth), line, file)

    def _table(self, node: Any, depth: int) -> dict[str, LocatedValue]:
        table: dict[str, LocatedValue] = {}
        for key_node, value_node in node.value:
            file, line = self._places.at(key_node.start_mark.line)
            if key_node.id != "scalar":
                raise self._error(
                    f"{file}:{line}: a key must be plain text;"
                    " put quotes around values with {{ }}"
                )
            key = str(key_node.value)
            first = table.get(key)
            # The including file or the next include may set an included key again:
            # the last one counts.
            if first and first.file == file:
                raise self._error(
                    f"{file}:{line}: {key!r} appears twice, first in line {first.line}"
                )
            value = self.value(value_node, depth + 1)
            # An entry has the position of its key, where a reader looks for it.
            table[key] = LocatedValue(value.content, line, file, value.plain)
        return table


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` if a known word resembles `word`, else an empty string."""
    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
