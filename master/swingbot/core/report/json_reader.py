"""Read a stored document key by key, and name any key that is missing, unknown or mistyped."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class BadFacts(ValueError):
    """The document does not have the facts of a report; the message names the place."""


def number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadFacts(f"{where}: {value!r} is not a finite number")
    return float(value)


def one_of(value: Any, known: tuple[T, ...], where: str) -> T:
    for item in known:
        if value == item:
            return item
    raise BadFacts(f"{where}: {value!r} is not one of {', '.join(map(str, known))}")


def texts(value: Any, where: str) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise BadFacts(f"{where}: is not a list of strings")
    return list(value)


class Reader:
    """Takes each key of a mapping once; any key that remains at the end is an error."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            raise BadFacts(f"{where}: is not a mapping")
        self._unread = dict(value)
        self._where = where

    def take(self, key: str) -> Any:
        if key not in self._unread:
            raise BadFacts(f"{self._where}.{key}: is missing")
        return self._unread.pop(key)

    def end(self) -> None:
        if self._unread:
            raise BadFacts(f"{self._where}: unknown key {next(iter(self._unread))!r}")

    def text(self, key: str) -> str:
        return self._text(self.take(key), key)

    def take_if_there(self, key: str) -> Any:
        """Take a key that not every report has; None if missing."""
        return self._unread.pop(key, None)

    def items_if_there(self, key: str) -> list[Any]:
        return self.items(key) if key in self._unread else []

    def mapping_if_there(self, key: str) -> dict[str, Any]:
        value = self._unread.pop(key, {})
        if not isinstance(value, Mapping):
            raise BadFacts(f"{self._where}.{key}: is not a mapping")
        return {self._text(name, key): item for name, item in value.items()}

    def flag_if_there(self, key: str) -> bool | None:
        value = self._unread.pop(key, None)
        if value is not None and not isinstance(value, bool):
            raise BadFacts(f"{self._where}.{key}: {value!r} is not true or false")
        return value

    def text_if_there(self, key: str) -> str | None:
        """Take a text that not every report has; None if missing."""
        value = self._unread.pop(key, None)
        return None if value is None else self._text(value, key)

    def _text(self, value: Any, key: str) -> str:
        if not isinstance(value, str):
            raise BadFacts(f"{self._where}.{key}: {value!r} is not a string")
        return value

    def whole(self, key: str) -> int:
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise BadFacts(f"{self._where}.{key}: {value!r} is not a count")
        return value

    def real(self, key: str) -> float:
        return number(self.take(key), f"{self._where}.{key}")

    def real_or_none(self, key: str) -> float | None:
        value = self.take(key)
        return None if value is None else number(value, f"{self._where}.{key}")

    def real_if_there(self, key: str) -> float | None:
        """Take a number that not every report has; None if missing."""
        return self.real_or_none(key) if key in self._unread else None

    def items(self, key: str) -> list[Any]:
        value = self.take(key)
        if not isinstance(value, (list, tuple)):
            raise BadFacts(f"{self._where}.{key}: is not a list")
        return list(value)

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self._text(item, key) for item in self.items(key))

    def texts_by_name(self, key: str) -> dict[str, str]:
        value = self.take(key)
        if not isinstance(value, Mapping):
            raise BadFacts(f"{self._where}.{key}: is not a mapping")
        return {self._text(name, key): self._text(item, key) for name, item in value.items()}
