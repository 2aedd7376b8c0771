"""The strict reader of a table in a testbox file: every key is read by name and type,
and errors name file and line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import yaml


class TestboxError(ValueError):
    """A testbox file is invalid; the message names file and line and says what to change."""

    __test__ = False  # not a pytest class, whatever its name begins with


class StrictTable:
    """A YAML mapping that knows the line of each key and which keys were read."""

    def __init__(
        self,
        file_name: str,
        line: int,
        values: Mapping[str, Any],
        lines: Mapping[str, int],
        nested: Mapping[str, StrictTable],
        written: Mapping[str, str],
    ) -> None:
        self._file, self._line, self._written = file_name, line, dict(written)
        self._values, self._lines, self._nested = dict(values), dict(lines), dict(nested)
        self._asked: set[str] = set()

    @classmethod
    def parse(cls, text: str, file_name: str) -> StrictTable:
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
            if not isinstance(root, yaml.MappingNode):
                raise TestboxError(
                    f"{file_name}: line 1: a testbox file must be a table of 'key: value' lines"
                )
            return cls._from_node(root, file_name)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            raise TestboxError(
                f"{file_name}: line {mark.line + 1 if mark else 1}: not valid YAML:"
                f" {getattr(error, 'problem', error)}"
            ) from error

    @classmethod
    def _from_node(cls, node: yaml.MappingNode, file_name: str) -> StrictTable:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        nested: dict[str, StrictTable] = {}
        written: dict[str, str] = {}
        loader = yaml.SafeLoader("")
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in lines:
                raise TestboxError(
                    f"{file_name}: line {line}: {key} appears twice, first in line {lines[key]}"
                )
            lines[key] = line
            values[key] = loader.construct_object(value_node, deep=True)
            if isinstance(value_node, yaml.ScalarNode):
                written[key] = str(value_node.value)
            if isinstance(value_node, yaml.MappingNode):
                nested[key] = cls._from_node(value_node, file_name)
        return cls(file_name, node.start_mark.line + 1, values, lines, nested, written)

    def has(self, key: str) -> bool:
        return key in self._values

    def names(self) -> list[str]:
        return list(self._values)

    def scalar(self, key: str) -> str:
        """Return a plain value as written: `off` is a word here, whatever its type in YAML."""
        self.take(key)
        if key not in self._written:
            self.refuse(key, f"{key} must be a plain value")
        return self._written[key]

    def take(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        if key not in self._values:
            if default is None:
                raise TestboxError(f"{self._file}: line {self._line}: {key} is missing")
            return default
        return self._values[key]

    def table(self, key: str) -> StrictTable:
        self.take(key)
        if key not in self._nested:
            self.refuse(key, f"{key} must be a table")
        return self._nested[key]

    def text(self, key: str, default: str | None = None) -> str:
        value = self.take(key, default)
        if not isinstance(value, str):
            self.refuse(key, f"{key} is {value!r}, must be text")
        return value

    def whole(self, key: str, default: int | None = None, at_least: int = 0) -> int:
        value = self.take(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            self.refuse(key, f"{key} is {value!r}, must be a whole number of at least {at_least}")
        return int(value)

    def number(self, key: str, default: float) -> float:
        value = self.take(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e6:
            self.refuse(key, f"{key} is {value!r}, must be a number above 0")
        return float(value)

    def truth(self, key: str, default: bool) -> bool:
        value = self.take(key, default)
        if not isinstance(value, bool):
            self.refuse(key, f"{key} is {value!r}, must be true or false")
        return bool(value)

    def refuse(self, key: str, why: str) -> NoReturn:
        """Raise TestboxError for `key`, with its line."""
        raise TestboxError(f"{self._file}: line {self._lines.get(key, self._line)}: {why}")

    def done(self) -> None:
        """Refuse unknown keys."""
        for key in self._values:
            if key not in self._asked:
                self.refuse(
                    key, f"key {key!r} is unknown here; known are {', '.join(sorted(self._asked))}"
                )
