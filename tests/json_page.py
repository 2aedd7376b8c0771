"""docs/json.md as shapes: which keys a document has, and of which types.

`python -m tests.json_page` prints the page with the sections of typed documents made from
`swingbot/core/model/documents.py`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "json.md"
TYPES: Final = ROOT / "master" / "swingbot" / "core" / "model" / "documents.py"

Keys = dict[str, tuple[bool, str]]  # key -> (optional, type)

_SECTION: Final = re.compile(r"^### (.+)$", re.MULTILINE)
_KEY: Final = re.compile(r"`([\w-]+)`(\??)")
_BULLET: Final = re.compile(r"- `([\w-]+)`(\??) (.+?)(?:: .*)?")
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
    named = {key: bool(mark) for key, mark in _KEY.findall(line[start.end() :].split(". ")[0])}
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


def page() -> str:
    """The page, with a section for each type in place of the one that it has."""
    text = PAGE.read_text()
    common = _common(text)
    source = TYPES.read_text()
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef):
            before, heading, after = text.partition(f"### {_title(node.name)}\n")
            if not heading:
                raise ValueError(f"{PAGE}: no section for {node.name}")
            _, following, rest = after.partition("\n### ")
            section = "\n\n".join(_paragraphs(node, source.splitlines(), common))
            text = f"{before}{heading}\n{section}\n{following}{rest}"
    return text


def _common(text: str) -> dict[str, str]:
    """Common keys with their types."""
    _, _, section = text.partition(f"### {_COMMON}\n")
    bullets = re.findall(r"^- `(\w+)` (.+?): ", section.partition("\n### ")[0], re.MULTILINE)
    return dict(bullets)


def _paragraphs(node: ast.ClassDef, lines: list[str], common: Mapping[str, str]) -> Iterator[str]:
    if about := ast.get_docstring(node):
        yield about
    shared, own = [], list[str]()
    for base in node.bases:
        if (name := ast.unparse(base)) == "_Classed":
            shared.append("`class`")
        elif name != "TypedDict":
            yield f"As {_link(name)}."
    for key in node.body:
        if isinstance(key, ast.AnnAssign):
            name, kind = ast.unparse(key.target), _kind(key.annotation)
            mark = "?" * ast.unparse(key.annotation).startswith("NotRequired")
            if meaning := _comment(key, lines):
                own.append(_filled(f"- `{name}`{mark} {kind}: {meaning}"))
            elif common.get(name) == kind:
                shared.append(f"`{name}`{mark}")
            else:
                raise ValueError(
                    f"{TYPES}: {node.name}.{name}: {kind} is not a common key: say what"
                )
    if shared:
        yield _filled(f"[Common](#{_COMMON.replace(' ', '-')}): {', '.join(shared)}.", "")
    if own:
        yield "\n".join(own)


def _comment(key: ast.AnnAssign, lines: list[str]) -> str:
    """The comment beside a key, or the lines above it."""
    beside = lines[key.lineno - 1][key.end_col_offset :].strip().removeprefix("# ")
    above: list[str] = []
    while (line := lines[key.lineno - 2 - len(above)].strip()).startswith("# "):
        above.insert(0, line.removeprefix("# "))
    return beside or " ".join(above)


def _kind(annotation: ast.expr) -> str:
    """A type as the page writes it."""
    match annotation:
        case ast.BinOp(left, ast.BitOr(), right):
            return f"{_kind(left)}|{_kind(right)}"
        case ast.Constant(None):
            return "null"
        case ast.Subscript(ast.Name("NotRequired"), inner):
            return _kind(inner)
        case ast.Subscript(ast.Name("list"), inner):
            return f"{_kind(inner)}[]"
        case ast.Subscript(ast.Name("dict"), ast.Tuple([_, inner])):
            return "object" if ast.unparse(inner) == "Any" else f"map of {_kind(inner)}"
        case ast.Name(name):
            return _NAMES.get(name) or _link(name)
    raise ValueError(f"{TYPES}: {ast.unparse(annotation)} has no form in the page")


def _title(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def _link(name: str) -> str:
    return f"[{_title(name)}](#{_title(name).replace(' ', '-')})"


def _filled(text: str, indent: str = "  ") -> str:
    return textwrap.fill(
        text, 98, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


if __name__ == "__main__":
    print(page(), end="")
