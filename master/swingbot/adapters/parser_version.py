"""Which code reads a program's output: a hash of its parse.py and meta.yaml, those of the monitors, and what they import of ours.

Whatever can change a sample is in the hash; more than that may be, which costs a reading of history and changes no value.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import swingbot_jobs
from swingbot_jobs.program import Program

_IMPORT: Final = re.compile(r"^\s*(?:from|import) swingbot_jobs\.(\w+)", re.MULTILINE)
_SHARED: Final = Path(swingbot_jobs.__file__).parent


def parser_versions(programs: Mapping[str, Program]) -> dict[str, str]:
    """Program -> 64 hex digits."""
    monitors = [
        file for program in programs.values() if program.kind == "monitor" for file in _own(program)
    ]
    return {name: _digest([*_own(program), *monitors]) for name, program in programs.items()}


def _own(program: Program) -> list[Path]:
    return sorted([*program.directory.glob("*.py"), program.directory / "meta.yaml"])


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in _closure([*files, _SHARED / "parse.py"]):
        content = file.read_bytes()
        digest.update(f"{file.parent.name}/{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _closure(files: list[Path]) -> list[Path]:
    """The files, and the modules of `swingbot_jobs` that they import, directly or not; sorted by folder and name."""
    seen: set[Path] = set()
    todo = list(files)
    while todo:
        file = todo.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        if file.suffix == ".py":
            todo += [
                _SHARED / f"{name}.py" for name in _IMPORT.findall(file.read_text(errors="replace"))
            ]
    return sorted(seen, key=lambda file: (file.parent.name, file.name))
