"""docs/json.md as shapes: which keys a document has, and of which types.

`python -m tests.json_page` prints the page with its sections made from the types of documents.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from swingbot.web.api.document_types import DocumentType, Key, all_keys, common, document_types

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "json.md"

Keys = dict[str, tuple[bool, str]]  # key -> (optional, type)

_LINK: Final = re.compile(r"\[([^\]]+)\]\(#[^)]+\)")
_COMMON: Final = "common keys"
_NAMES: Final = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "Any": "any",
}
_SCALARS: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
    "object": (dict,),
}


def shapes() -> dict[str, Keys]:
    """The shapes of the page by title."""
    return {
        one.title: {key.name: (key.optional, _kind(key.kind)) for key in all_keys(one)}
        for one in document_types().values()
        if one.named
    }


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


def page() -> str:
    """The page, with a section for each type in place of the one that it has."""
    text = PAGE.read_text()
    sections = {one.title: _paragraphs(one) for one in document_types().values() if one.named}
    meanings = (f"- `{key.name}` {_kind(key.kind)}: {key.meaning}" for key in common().values())
    sections[_COMMON] = iter(["\n".join(map(_filled, meanings))])
    for title, paragraphs in sections.items():
        before, heading, after = text.partition(f"### {title}\n")
        if not heading:
            raise ValueError(f"{PAGE}: no section for {title}")
        _, following, rest = after.partition("\n### ")
        section = "\n\n".join(paragraphs)
        text = f"{before}{heading}\n{section}\n{following}{rest}"
    return text


def _paragraphs(one: DocumentType) -> Iterator[str]:
    if one.about:
        yield one.about
    keys = list[Key]()
    for base in (document_types()[name] for name in one.bases):
        if base.named:
            yield f"As {_link(base.name)}."
        else:
            keys += all_keys(base)
    keys += one.keys
    shared, own = [], list[str]()
    for key in keys:
        mark, kind = "?" * key.optional, _kind(key.kind)
        known = common().get(key.name)
        if known is not None and kind == _kind(known.kind) and key.meaning in ("", known.meaning):
            shared.append(f"`{key.name}`{mark}")
        elif key.meaning:
            own.append(_filled(f"- `{key.name}`{mark} {kind}: {key.meaning}"))
        else:
            raise ValueError(f"{one.name}.{key.name}: {kind} is not a common key: say what")
    if shared:
        yield _filled(f"[Common](#{_COMMON.replace(' ', '-')}): {', '.join(shared)}.", "")
    if own:
        yield "\n".join(own)


def _kind(annotation: ast.expr) -> str:
    """A type as the page writes it."""
    match annotation:
        case ast.BinOp(left, ast.BitOr(), right):
            return f"{_kind(left)}|{_kind(right)}"
        case ast.Constant(None):
            return "null"
        case ast.Subscript(ast.Name("list"), inner):
            return f"{_kind(inner)}[]"
        case ast.Subscript(ast.Name("dict"), ast.Tuple([_, inner])):
            return "object" if ast.unparse(inner) == "Any" else f"map of {_kind(inner)}"
        case ast.Name(name):
            return _NAMES.get(name) or _link(name)
    raise ValueError(f"{ast.unparse(annotation)} has no form in the page")


def _link(name: str) -> str:
    title = document_types()[name].title
    return f"[{title}](#{title.replace(' ', '-')})"


def _filled(text: str, indent: str = "  ") -> str:
    return textwrap.fill(
        text, 98, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    print(page(), end="")
