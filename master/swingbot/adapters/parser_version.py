"""Version of the code that parses a program's output: a hash of its parse.py and meta.yaml, those
of the monitors, and the swingbot modules they import.

The hash covers everything that can change a sample. It may cover more, which costs an extra reparse
but changes no value.
"""

from __future__ import annotations

import ast
import hashlib
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import swingbot_jobs
from swingbot_jobs.language.program import Program

_SHARED: Final = Path(swingbot_jobs.__file__).parent


# Python 3.11 miscounts its recursion depth if two threads parse at once (CPython issue 106905).
_PARSING: Final = threading.Lock()


def parser_versions(programs: Mapping[str, Program]) -> dict[str, str]:
    """Return the hash for each program: program -> 64 hex digits."""
    monitors = [
        file for program in programs.values() if program.kind == "monitor" for file in _own(program)
    ]
    return {name: _digest([*_own(program), *monitors]) for name, program in programs.items()}


def _own(program: Program) -> list[Path]:
    return sorted([*program.directory.glob("*.py"), program.directory / "meta.yaml"])


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in _closure([*files, _SHARED / "reading" / "parse.py"]):
        content = file.read_bytes()
        digest.update(f"{file.parent.name}/{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _closure(files: list[Path]) -> list[Path]:
    """Return the files and the modules of `swingbot_jobs` that they import, directly or indirectly;
    sorted by directory and name.
    """
    seen: set[Path] = set()
    todo = list(files)
    while todo:
        file = todo.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        if file.suffix == ".py":
            todo += imported(file.read_text(errors="replace"))
    return sorted(seen, key=lambda file: (file.parent.name, file.name))


@cache  # the programs share most of what they import
def imported(source: str) -> tuple[Path, ...]:
    """Return the paths that modules of `swingbot_jobs` imported by `source` would have; a path may
    not exist.
    """
    try:
        with _PARSING:
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ()  # it cannot be imported either
    found: dict[Path, None] = {}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from package import name`: the name may be a module of the package.
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            package, *rest = name.split(".")
            if package == _SHARED.name:
                place = _SHARED.joinpath(*rest)
                found |= {place / "__init__.py": None, place.with_suffix(".py"): None}
    return tuple(found)
