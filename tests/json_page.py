"""docs/json.md as shapes: which keys a document has, and of which types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "json.md"

Keys = dict[str, tuple[bool, str]]  # key -> (optional, type)

_SECTION: Final = re.compile(r"^### (.+)$", re.MULTILINE)
_KEY: Final = re.compile(r"`([\w-]+)`(\??)")
_BULLET: Final = re.compile(r"- `([\w-]+)`(\??) (.+?)(?:: .*)?")
_LINK: Final = re.compile(r"\[([^\]]+)\]\(#[^)]+\)")
_COMMON: Final = "common keys"
_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "object": (dict,),
}


def shapes() -> dict[str, Keys]:
    """The shapes of the page by title; the common keys are in the shapes that list them."""
    sections = _SECTION.split(PAGE.read_text())[1:]
    found: dict[str, Keys] = {}
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        keys: Keys = {}
        for paragraph in re.split(r"\n\n|\n(?=- )", text.strip()):
            keys |= _keys(" ".join(paragraph.split()), found)
        found[title] = keys
    del found[_COMMON]
    return found


def _keys(line: str, found: Mapping[str, Keys]) -> Keys:
    """What one paragraph or bullet declares: a key, common keys, keys of another shape."""
    if bullet := _BULLET.fullmatch(line):
        return {bullet[1]: (bool(bullet[2]), bullet[3])}
    start = re.match(r"(As )?\[([^\]]+)\]\(#[^)]+\)(:|, without |\.$)", line)
    if start is None:
        return {}
    named = {key: bool(mark) for key, mark in _KEY.findall(line[start.end() :])}
    if not start[1]:
        return {key: (optional, found[_COMMON][key][1]) for key, optional in named.items()}
    other = found[start[2]]
    if start[3] == ":":
        return {key: other[key] for key in named}
    return {key: kind for key, kind in other.items() if key not in named}


@dataclass
class Page:
    """The shapes of the page. `used`: those that a checked document had."""

    shapes: dict[str, Keys]
    used: set[str] = field(default_factory=set)

    def check(self, value: Any, kind: str, where: str) -> list[str]:
        """What is wrong with a value of a documented type; nothing if it fits an alternative."""
        problems: list[str] = []
        for option in kind.split("|"):
            problems = self._option(value, option, where)
            if not problems:
                return []
        return problems

    def _option(self, value: Any, kind: str, where: str) -> list[str]:
        if kind == "any":
            return []
        items: Iterable[tuple[Any, Any]] | None
        if kind.startswith("map of "):
            items = value.items() if isinstance(value, dict) else None
            inner = kind.removeprefix("map of ")
        elif kind.endswith("[]"):
            items = enumerate(value) if isinstance(value, list) else None
            inner = kind.removesuffix("[]")
        elif linked := _LINK.fullmatch(kind):
            return self.shape(value, linked[1], where)
        else:
            plain = _SCALARS[kind]
            fits = isinstance(value, plain) and (bool in plain or not isinstance(value, bool))
            return [] if fits else [f"{where}: {value!r:.80} is not {kind}"]
        if items is None:
            return [f"{where}: {value!r:.80} is not {kind}"]
        return [wrong for key, item in items for wrong in self.check(item, inner, f"{where}.{key}")]

    def shape(self, value: Any, name: str, where: str) -> list[str]:
        """What is wrong with an object whose keys the page lists."""
        keys = self.shapes[name]
        if not isinstance(value, dict):
            return [f"{where}: {value!r:.80} is not a {name}"]
        self.used.add(name)
        missing = {key for key, (optional, _) in keys.items() if not optional} - value.keys()
        problems = [
            f"{where}.{key} is in the page ({name}), not in the document" for key in missing
        ]
        for key, item in value.items():
            if key not in keys:
                problems.append(f"{where}.{key} is in the document, not in the page ({name})")
            else:
                problems += self.check(item, keys[key][1], f"{where}.{key}")
        return problems
