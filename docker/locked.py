"""The part of requirements.lock that some extras of pyproject.toml need, hashes and all: `locked.py EXTRA... >requirements.txt`.

uv writes below each requirement who wants it (`# via`); the part is what can be reached from the extras over these lines.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_HEAD = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==")


def normal(name: str) -> str:
    """A package's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def blocks(lock: str) -> dict[str, str]:
    """The lines of each locked requirement, with the comments below it, by its normal name."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in lock.splitlines():
        if match := _HEAD.match(line):
            lines = found.setdefault(normal(match[1]), [])
        if not line.startswith("#"):
            lines.append(line)
    return {name: "\n".join(lines) + "\n" for name, lines in found.items()}


def wanted_by(block: str) -> set[str]:
    """Normal names of the packages that want this one; our own counts as one of them."""
    said = block.partition("# via")[2]
    return {
        normal(match)
        for match in re.findall(
            r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(?: \([^)]*\))?\s*(?:#|$)", said, re.MULTILINE
        )
    }


def declared(project: str, extras: Iterable[str]) -> set[str]:
    """Normal names of what the project itself and these extras ask for. Raises SystemExit for an extra that there is not."""
    table = tomllib.loads(project)["project"]
    asked = list(table["dependencies"])
    for extra in extras:
        if extra not in table["optional-dependencies"]:
            raise SystemExit(
                f"pyproject.toml has no extra {extra}; it has {', '.join(table['optional-dependencies'])}"
            )
        asked += table["optional-dependencies"][extra]
    return {normal(re.split(r"[\[<>=!~; ]", one)[0]) for one in asked}


def part(lock: str, roots: Iterable[str]) -> str:
    """The blocks of `roots` and of all that they want. Raises SystemExit if the lock lacks one of `roots`."""
    every = blocks(lock)
    parents = {name: wanted_by(block) for name, block in every.items()}
    found = set(roots)
    if missing := sorted(found - set(every)):
        raise SystemExit(f"requirements.lock has no {', '.join(missing)}; run `make lock`")
    while more := {name for name, above in parents.items() if above & found} - found:
        found |= more
    return "".join(every[name] for name in sorted(found))


def main() -> None:
    # setuptools installs our own package; nothing else of the extra `test` is wanted.
    roots = declared((ROOT / "pyproject.toml").read_text(), sys.argv[1:]) | {"setuptools"}
    sys.stdout.write(part((ROOT / "requirements.lock").read_text(), roots))


if __name__ == "__main__":
    main()
