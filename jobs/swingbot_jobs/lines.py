"""YAML that remembers its lines: what job files and meta.yaml are read with.

Scalars keep the text they were written with (`300s`, `10`, `0x10`, `yes`): what a value means is
said by the parameter it belongs to, not by YAML. Files come from outside, so size, depth and number of
values are limited, and a key that stands twice is an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

import yaml

MAX_CHARACTERS = 256 * 1024
MAX_VALUES = 20_000  # aliases count each time they are used: a few lines of them can stand for billions
MAX_DEPTH = 20


class LineError(ValueError):
    """A file is wrong; the message begins with `file:line:`."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value and the place it was written at; the content is text, None (empty or null), a tuple or a dict."""

    content: str | tuple[Value, ...] | dict[str, Value] | None
    line: int

    @property
    def text(self) -> str | None:
        """The text of a scalar; None for anything else."""
        return self.content if isinstance(self.content, str) else None

    @property
    def table(self) -> dict[str, Value] | None:
        """The entries of a table; None for anything else."""
        return self.content if isinstance(self.content, dict) else None

    @property
    def items(self) -> tuple[Value, ...]:
        """The items of a list; a lone value is a list of one, an empty one a list of none."""
        if isinstance(self.content, tuple):
            return self.content
        return () if self.content is None else (self,)


def read_documents(text: str, file_name: str, error: type[LineError] = LineError) -> list[Value]:
    """Read all `---` documents of `text`; raise `error` with file and line when it is not YAML that we take."""
    if len(text) > MAX_CHARACTERS:
        raise error(f"{file_name}:1: the file has {len(text)} characters, more than {MAX_CHARACTERS}")
    try:
        nodes = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except yaml.reader.ReaderError as problem:
        line = text.count("\n", 0, max(problem.position, 0)) + 1 if isinstance(problem.position, int) else 1
        raise error(f"{file_name}:{line}: has a character that YAML does not allow") from problem
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise error(f"{file_name}:{mark.line + 1 if mark else 1}: not valid YAML: {problem.problem or problem.context}") from problem
    except (RecursionError, ValueError, yaml.YAMLError) as problem:
        raise error(f"{file_name}:1: not valid YAML, or nested too deeply") from problem
    return [_Reader(file_name, error).value(node, 0) for node in nodes if node is not None]


class _Reader:
    def __init__(self, file_name: str, error: type[LineError]) -> None:
        self._file, self._error, self._left = file_name, error, MAX_VALUES

    def value(self, node: yaml.Node, depth: int) -> Value:
        line = node.start_mark.line + 1
        self._left -= 1
        if self._left < 0 or depth > MAX_DEPTH:
            raise self._error(f"{self._file}:{line}: too many values, or nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, yaml.ScalarNode):
            return Value(None if node.tag == "tag:yaml.org,2002:null" else str(node.value), line)
        if isinstance(node, yaml.SequenceNode):
            return Value(tuple(self.value(item, depth + 1) for item in node.value), line)
        assert isinstance(node, yaml.MappingNode)
        return Value(self._table(node, depth), line)

    def _table(self, node: yaml.MappingNode, depth: int) -> dict[str, Value]:
        table: dict[str, Value] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(f"{self._file}:{line}: a key must be plain text; put quotes around values with {{{{ }}}}")
            key = str(key_node.value)
            if key in table:
                raise self._error(f"{self._file}:{line}: {key!r} stands twice, first in line {table[key].line}")
            # An entry is where its key is: that is where someone looks for it.
            table[key] = Value(self.value(value_node, depth + 1).content, line)
        return table


def suggest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when something known looks like `word`, else nothing."""
    close = difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
