"""Reads the tables of a program's `meta.yaml`. Every key must be read, and errors name the line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final, NoReturn

from swingbot_jobs.yaml_lines import LineError, LocatedValue, suggest

PARAMETER_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")

Conditions = tuple[tuple[str, tuple[str, ...]], ...]  # (parameter, patterns of its value)


class ProgramError(LineError):
    """A meta.yaml is invalid; the message begins with `file:line:`."""


def holds(conditions: Conditions, params: Mapping[str, str]) -> bool:
    """Return whether each parameter matches one of its patterns; True without conditions."""
    return all(
        name in params and any(fnmatchcase(params[name], pattern) for pattern in patterns)
        for name, patterns in conditions
    )


class MetaTable:
    """A table of meta.yaml that records which keys were read."""

    def __init__(self, file_name: str, what: str, value: LocatedValue) -> None:
        self._file, self._what, self._value, self._asked = file_name, what, value, set[str]()
        if value.table is None:
            self.refuse(f"{what} must be a table of 'key: value' lines")
        self._entries = value.table or {}

    def refuse(self, why: str, at: LocatedValue | None = None) -> NoReturn:
        raise ProgramError(f"{self._file}:{(at or self._value).line}: {why}")

    def refuse_metric(self, full_name: str, why: str) -> NoReturn:
        """Refuse the entry of that metric; called on the table of the file."""
        metrics = self._entries["metrics"].table or {}
        name = full_name.partition(".")[2]
        self.refuse(f"metrics {name!r} is {why}", metrics[name])

    def conditions(self, value: LocatedValue) -> Conditions:
        """Read `parameter=pattern|pattern ...`, at least one."""
        found = []
        for word in (value.text or "").split():
            parameter, _, patterns = word.partition("=")
            if not PARAMETER_NAME.fullmatch(parameter) or not all(patterns.split("|")):
                self.refuse(f"{word!r} must be 'parameter=value' or 'parameter=value|value'", value)
            found.append((parameter, tuple(patterns.split("|"))))
        if not found:
            self.refuse("conditions need at least one 'parameter=value'", value)
        return tuple(found)

    def number(self, key: str) -> float:
        """Read a positive number."""
        text = self.text(key)
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < math.inf:
            self.refuse(f"{key} must be a number above 0", self._entries[key])
        return value

    def take(self, key: str) -> LocatedValue | None:
        self._asked.add(key)
        return self._entries.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        value = self.take(key)
        if value is None and default is not None:
            return default
        if value is None or value.text is None:
            self.refuse(f"{self._what} needs {key!r}, a text", value)
        return value.text

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        chosen = self.text(key, default)
        if chosen not in choices and chosen != default:
            self.refuse(
                f"{key} is {chosen!r}, must be one of {', '.join(choices)}", self._entries[key]
            )
        return chosen

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.take(key)
        items = value.items if value else ()
        if any(item.text is None for item in items):
            self.refuse(f"{key} must be a list of strings", value)
        return tuple(item.text or "" for item in items)

    def lines(self, key: str) -> tuple[tuple[str, ...], ...]:
        """Read a list of command lines, each a list of words."""
        value = self.take(key)
        lines = [item.items for item in (value.items if value else ())]
        if not lines or any(not line or any(w.text is None for w in line) for line in lines):
            self.refuse(f"{key} must be a list of lists of strings", value)
        return tuple(tuple(word.text or "" for word in line) for line in lines)

    def entries(self, key: str) -> Mapping[str, LocatedValue]:
        """Read a table of texts."""
        value = self.take(key)
        table = (value.table if value else None) or {}
        if any(entry.text is None for entry in table.values()):
            self.refuse(f"{key} must be a table of strings", value)
        return table

    def inner(self, key: str, value: LocatedValue) -> MetaTable:
        return MetaTable(self._file, key, value)

    def truth(self, key: str) -> bool:
        return self.choice(key, ("true", "false"), "false") == "true"

    def percent(self, value: LocatedValue) -> float:
        try:
            number = float(value.text or "")
        except ValueError:
            number = -1.0
        if not 0 <= number < 1000:
            self.refuse("a smallest effect must be a number in percent, such as 2", value)
        return number

    def tables(self, key: str) -> Iterator[tuple[str, MetaTable]]:
        value = self.take(key)
        if value is None or value.content is None:
            return
        if value.table is None:
            self.refuse(f"{key} must be a table", value)
        for name, entry in (value.table or {}).items():
            yield name, MetaTable(self._file, f"{key} {name!r}", entry)

    def done(self) -> None:
        """Refuse unknown keys."""
        for key, value in self._entries.items():
            if key not in self._asked:
                self.refuse(
                    (
                        f"{self._what} has an unknown key {key!r}{suggest(key, self._asked)};"
                        f" known are {', '.join(sorted(self._asked))}"
                    ),
                    value,
                )
