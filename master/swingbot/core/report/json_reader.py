"""Reading a stored document key by key, so that what is missing, unknown or of the wrong kind is named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class BadFacts(ValueError):
    """A document is not the facts of a report; the message names the place."""


def number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadFacts(f"{where}: {value!r} is not a finite number")
    return float(value)


def one_of(value: Any, known: tuple[T, ...], where: str) -> T:
    for item in known:
        if value == item:
            return item
    raise BadFacts(f"{where}: {value!r} is none of {', '.join(map(str, known))}")


def texts(value: Any, where: str) -> list[str]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
        raise BadFacts(f"{where}: is not a list of texts")
    return list(value)


class Reader:
    """Takes the keys of one mapping, once each; what is left over at the end is an error."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            raise BadFacts(f"{where}: is not a mapping")
        self._left = dict(value)
        self._where = where

    def take(self, key: str) -> Any:
        if key not in self._left:
            raise BadFacts(f"{self._where}.{key}: is missing")
        return self._left.pop(key)

    def end(self) -> None:
        if self._left:
            raise BadFacts(f"{self._where}: unknown key {next(iter(self._left))!r}")

    def text(self, key: str) -> str:
        return self._text(self.take(key), key)

    def take_if_there(self, key: str) -> Any:
        """For a key that reports of an older swingbot do not have; None for none."""
        return self._left.pop(key, None)

    def items_if_there(self, key: str) -> list[Any]:
        return self.items(key) if key in self._left else []

    def mapping_if_there(self, key: str) -> dict[str, Any]:
        value = self._left.pop(key, {})
        if not isinstance(value, Mapping):
            raise BadFacts(f"{self._where}.{key}: is not a mapping")
        return {self._text(name, key): item for name, item in value.items()}

    def flag_if_there(self, key: str) -> bool | None:
        value = self._left.pop(key, None)
        if value is not None and not isinstance(value, bool):
            raise BadFacts(f"{self._where}.{key}: {value!r} is not true or false")
        return value

    def text_if_there(self, key: str) -> str | None:
        """For a key that reports of an older swingbot do not have."""
        value = self._left.pop(key, None)
        return None if value is None else self._text(value, key)

    def _text(self, value: Any, key: str) -> str:
        if not isinstance(value, str):
            raise BadFacts(f"{self._where}.{key}: {value!r} is not text")
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
