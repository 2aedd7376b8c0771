"""Print the part of requirements.lock for some extras of pyproject.toml, with hashes.

Usage: `locked.py EXTRA... >requirements.txt`. Below each requirement, uv lists the packages that
need it (`# via`); the part is the set reachable from the extras over these lines.
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
    """Normalize a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def blocks(lock: str) -> dict[str, str]:
    """Lines of each locked requirement, with the comments below it, by normalized name."""
    requirements: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in lock.splitlines():
        if match := _HEAD.match(line):
            lines = requirements.setdefault(normal(match[1]), [])
        if not line.startswith("#"):
            lines.append(line)
    return {name: "\n".join(lines) + "\n" for name, lines in requirements.items()}


def wanted_by(block: str) -> set[str]:
    """Normalized names of the packages that need this one, swingbot included."""
    via = block.partition("# via")[2]
    return {
        normal(match)
        for match in re.findall(
            r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(?: \([^)]*\))?\s*(?:#|$)", via, re.MULTILINE
        )
    }


def declared(project: str, extras: Iterable[str]) -> set[str]:
    """Normalized names of the requirements of the project and these extras.

    Raises SystemExit for an unknown extra.
    """
    table = tomllib.loads(project)["project"]
    requirements = list(table["dependencies"])
    for extra in extras:
        if extra not in table["optional-dependencies"]:
            raise SystemExit(
                f"pyproject.toml has no extra {extra};"
                f" extras are {', '.join(table['optional-dependencies'])}"
            )
        requirements += table["optional-dependencies"][extra]
    return {normal(re.split(r"[\[<>=!~; ]", one)[0]) for one in requirements}


def part(lock: str, roots: Iterable[str]) -> str:
    """Blocks of `roots` and their dependencies. Raises SystemExit if the lock lacks a root."""
    every = blocks(lock)
    parents = {name: wanted_by(block) for name, block in every.items()}
    names = set(roots)
    if missing := sorted(names - set(every)):
        raise SystemExit(f"requirements.lock has no {', '.join(missing)}; run `make lock`")
    while more := {name for name, above in parents.items() if above & names} - names:
        names |= more
    return "".join(every[name] for name in sorted(names))


def main() -> None:
    # setuptools installs swingbot itself; the rest of the extra `test` is not needed.
    roots = declared((ROOT / "pyproject.toml").read_text(), sys.argv[1:]) | {"setuptools"}
    sys.stdout.write(part((ROOT / "requirements.lock").read_text(), roots))


if __name__ == "__main__":
    main()
