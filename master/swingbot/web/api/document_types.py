"""The types of documents as the source of their modules has them, comments included."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Final

from swingbot.core.model import (
    answer_documents,
    change_documents,
    common_keys,
    documents,
    list_documents,
    order_documents,
    plan_documents,
    report_documents,
    result_documents,
    upkeep_documents,
    why_documents,
)

MODULES: Final[Sequence[ModuleType]] = (
    documents,
    why_documents,
    order_documents,
    report_documents,
    list_documents,
    change_documents,
    plan_documents,
    result_documents,
    upkeep_documents,
    answer_documents,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """`kind` is the type as Python has it. An empty `meaning` is that of the common key."""

    name: str
    optional: bool
    kind: ast.expr
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentType:
    """A class of documents: its own `keys`, and the classes whose keys it has too.

    `named` is False for a base that is no document itself: one that a call makes, since its only
    key is a keyword, and one whose name ends in `Keys`.
    """

    name: str
    about: str
    bases: Sequence[str]
    keys: Sequence[Key]
    named: bool = True

    @property
    def title(self) -> str:
        """`LineOfATable` is a `line of a table`."""
        return re.sub(r"(?<!^)(?=[A-Z])", " ", self.name).lower()


@cache
def document_types() -> Mapping[str, DocumentType]:
    """The types by their names, in the order of their modules."""
    return {one.name: one for module in MODULES for one in _types_in(module)}


@cache
def common() -> Mapping[str, Key]:
    """Keys that many documents have, by name in alphabetical order."""
    (shared,) = _types_in(common_keys)
    return {key.name: key for key in sorted(all_keys(shared), key=lambda key: key.name)}


def all_keys(one: DocumentType) -> list[Key]:
    """The keys of a document, those of its bases first."""
    inherited = (key for base in one.bases for key in all_keys(document_types()[base]))
    return [*inherited, *one.keys]


def _types_in(module: ModuleType) -> Iterator[DocumentType]:
    source = inspect.getsource(module)
    lines = source.splitlines()
    for node in ast.parse(source).body:
        match node:
            case ast.Assign(
                [ast.Name(name)], ast.Call(_, [_, ast.Dict([ast.Constant(key)], [kind])])
            ):
                only = Key(name=str(key), optional=False, kind=kind, meaning=_comment(node, lines))
                yield DocumentType(name=name, about="", bases=[], keys=[only], named=False)
            case ast.ClassDef(name):
                yield DocumentType(
                    name=name,
                    about=ast.get_docstring(node) or "",
                    bases=[base for base in map(ast.unparse, node.bases) if base != "TypedDict"],
                    keys=[_key(key, lines) for key in node.body if isinstance(key, ast.AnnAssign)],
                    named=not name.endswith("Keys"),
                )


def _key(node: ast.AnnAssign, lines: Sequence[str]) -> Key:
    kind, optional = node.annotation, False
    if isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "NotRequired":
        kind, optional = kind.slice, True
    name = ast.unparse(node.target)
    return Key(name=name, optional=optional, kind=kind, meaning=_comment(node, lines))


def _comment(node: ast.stmt, lines: Sequence[str]) -> str:
    """The comment beside a key, or the lines above it."""
    beside = lines[node.lineno - 1][node.end_col_offset or 0 :].strip().removeprefix("# ")
    above: list[str] = []
    while (line := lines[node.lineno - 2 - len(above)].strip()).startswith("# "):
        above.insert(0, line.removeprefix("# "))
    return beside or " ".join(above)
