"""Every regular expression of the product, and texts that make a slow one slow.

An attack on an expression is a text that leads to a repeatable piece of it, that piece many times,
and an end that does not match. The pieces are the contiguous parts of each sequence in it.
"""

from __future__ import annotations

import ast
import importlib.util
import math
import pkgutil
import re
import re._constants as op  # type: ignore[import-not-found]  # private, and stable since 3.11
import re._parser as parser  # type: ignore[import-not-found]
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import swingbot
import swingbot_db
import swingbot_jobs
import swingbot_worker

PACKAGES: Final = (swingbot, swingbot_jobs, swingbot_db, swingbot_worker)
PROGRAMS: Final = Path(__file__).parent.parent / "jobs/programs"
METHODS: Final = ("match", "fullmatch", "search", "findall", "finditer", "split", "sub", "subn")
_CHARACTERS: Final = "a0 -./<>@:=?\n\x00~Z\xe9\u7b54_\"'%\t,;[]()#{}x1\\"
_CATEGORIES: Final[Mapping[Any, Callable[[str], bool]]] = {
    op.CATEGORY_DIGIT: str.isdigit,
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
    op.CATEGORY_NOT_DIGIT: lambda c: not c.isdigit(),
    op.CATEGORY_NOT_SPACE: lambda c: not c.isspace(),
    op.CATEGORY_NOT_WORD: lambda c: not (c.isalnum() or c == "_"),
}
_VARIANTS: Final = 3  # texts of an alternative or a set of characters
_PIECES: Final = 12  # of a sequence that are repeated together
MOST_SECONDS: Final = 1.0
_ENDS: Final = ("", "\x00", "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """An expression, where it is defined, and the methods that it is used with."""

    where: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]

    def seconds(self, text: str) -> float:
        """Return the processor time of all its methods on `text`; infinite above MOST_SECONDS."""
        given: Any = text
        if isinstance(self.pattern.pattern, bytes):
            given = text.encode("latin-1", "replace")
        begun = time.process_time()
        handler = signal.signal(signal.SIGVTALRM, _stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        try:
            self._apply(given)
        except _Slow:
            return math.inf
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, handler)
        return time.process_time() - begun

    def _apply(self, given: Any) -> None:
        for method in self.methods:
            call = getattr(self.pattern, method)
            answer = call(given[:0], given) if method in ("sub", "subn") else call(given)
            if method == "finditer":
                for _ in answer:
                    pass


class _Slow(Exception):
    pass


def _stop(*_: object) -> None:
    raise _Slow


def modules() -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each module of the product, and of each parser of results."""
    for parser_file in sorted(PROGRAMS.glob("*/parse.py")):
        yield f"{parser_file.parent.name}/parse.py", parser_file
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.rpartition(".")[2] not in ("__main__", "env"):
                spec = importlib.util.find_spec(found.name)
                assert spec is not None and spec.origin is not None
                yield found.name, Path(spec.origin)


def expressions() -> list[Used]:
    """Return every expression: constants of modules, and those written where they are used."""
    files = dict(modules())
    sources = {name: file.read_text() for name, file in files.items()}
    found = []
    for name, source in sources.items():
        tree = ast.parse(source)
        module = _imported(name, files[name]) if "import re\n" in source else None
        for constant in _constants(tree):
            value = getattr(module, constant, None)
            if isinstance(value, re.Pattern):
                own = constant.startswith("_") or "/" in name
                users = [source] if own else list(sources.values())
                methods = frozenset(_methods(constant, users)) or frozenset({"fullmatch"})
                found.append(Used(where=f"{name}.{constant}", pattern=value, methods=methods))
        found += [
            Used(where=f"{name}:{line}", pattern=pattern, methods=frozenset({method}))
            for line, method, pattern in _written_in_place(tree)
        ]
    return found


def computed(tree: ast.AST) -> Iterator[ast.Call]:
    """Yield the calls of `re` whose expression is computed in a function: no test has it."""
    top = {id(node) for node in _top_level(tree)}
    for call in _calls(tree):
        if id(call) not in top and not isinstance(call.args[0], ast.Constant):
            yield call


@dataclass(frozen=True, slots=True)
class Attack:
    """A text that leads to `pump`, that many times, and an end."""

    before: str
    pump: str
    end: str

    def text(self, size: int) -> str:
        """Return it with about `size` characters."""
        return self.before + self.pump * (size // len(self.pump)) + self.end


def attacks(pattern: re.Pattern[Any]) -> list[Attack]:
    """Return the attacks on an expression, each once."""
    written = pattern.pattern
    text = written if isinstance(written, str) else written.decode("latin-1")
    pumps = _pumps(parser.parse(text, pattern.flags & ~re.UNICODE), "")
    return list(
        dict.fromkeys(
            Attack(prefix, pump, end)
            for before, pump in pumps
            for prefix in ("", before)
            for end in _ENDS
            if pump
        )
    )


def _pumps(sequence: Any, before: str) -> Iterator[tuple[str, str]]:
    """Yield (what leads to it, text) for the pieces of a sequence and of the sequences in it."""
    items = list(sequence)
    texts = [_texts([item]) for item in items]
    lead = [before]
    for variants in texts:
        lead.append(lead[-1] + variants[0])
    for start, item in enumerate(items):
        for inner in _inside(item):
            yield from _pumps(inner, lead[start])
        for variant in texts[start][1:]:
            yield lead[start], variant
        for end in range(start + 1, min(len(items), start + _PIECES) + 1):
            yield lead[start], "".join(variants[0] for variants in texts[start:end])


def _inside(item: tuple[Any, Any]) -> list[Any]:
    kind, value = item
    if kind is op.BRANCH:
        return list(value[1])
    if kind in (op.SUBPATTERN, op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return [value[-1]]
    if kind in (op.ASSERT, op.ASSERT_NOT):
        return [value[1]]
    return [value] if kind is op.ATOMIC_GROUP else []


def _texts(sequence: Any) -> list[str]:
    """Return a few texts that a sequence matches; the first has each repeated piece."""
    texts = [""]
    for kind, value in sequence:
        if kind is op.LITERAL:
            own = [chr(value)]
        elif kind is op.NOT_LITERAL:
            own = [c for c in _CHARACTERS if ord(c) != value][:_VARIANTS]
        elif kind is op.ANY:
            own = ["a"]
        elif kind is op.IN:
            own = _members(value)
        elif kind is op.BRANCH:
            own = [_texts(each)[0] for each in value[1]][:_PIECES]
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            own = [text * max(value[0], 1) for text in _texts(value[2])]
        elif kind is op.SUBPATTERN or kind is op.ATOMIC_GROUP:
            own = _texts(value[-1] if kind is op.SUBPATTERN else value)
        else:
            own = [""]
        texts = [texts[0] + text for text in own] + [text + own[0] for text in texts[1:]]
    return texts[:_PIECES]


def _members(items: Sequence[tuple[Any, Any]]) -> list[str]:
    """Return characters of a set."""
    negated = items[0][0] is op.NEGATE
    named = "".join(
        chr(value if kind is op.LITERAL else value[0])
        for kind, value in items
        if kind in (op.LITERAL, op.RANGE)
    )
    fitting = [
        c
        for c in dict.fromkeys(named[:20] + _CHARACTERS)
        if any(_is_in(c, item) for item in items) != negated
    ]
    return fitting[:_VARIANTS] or ["a"]


def _is_in(c: str, item: tuple[Any, Any]) -> bool:
    kind, value = item
    if kind is op.LITERAL:
        return c == chr(value)
    if kind is op.RANGE:
        return ord(c) in range(value[0], value[1] + 1)
    if kind is op.CATEGORY:
        return bool(_CATEGORIES[value](c))
    return False


def _imported(name: str, file: Path) -> ModuleType:
    if "/" not in name:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


def _constants(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _methods(constant: str, sources: Sequence[str]) -> set[str]:
    used = re.compile(rf"\b{constant}\.({'|'.join(METHODS)})\b")
    return {match[1] for source in sources for match in used.finditer(source)}


def _written_in_place(tree: ast.AST) -> Iterator[tuple[int, str, re.Pattern[Any]]]:
    for call in _calls(tree):
        assert isinstance(call.func, ast.Attribute)
        if call.func.attr != "compile" and isinstance(call.args[0], ast.Constant):
            written = ast.unparse(call)
            flags = re.MULTILINE if re.search(r"\bre\.M\b|MULTILINE", written) else 0
            yield call.lineno, call.func.attr, re.compile(call.args[0].value, flags)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in (*METHODS, "compile")
        ):
            yield node


def _top_level(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from ast.walk(node)
