"""Run the tests that a change can reach, and say why each file is among them.

    python -m tests.affected [REV] [--list]

The change is everything since the common ancestor with REV (default: origin/main, or main where
there is no remote), uncommitted and new files included. A test file is chosen if it changed, if it
imports a changed module, directly or through others, or if it, or a module that it imports, names
a changed file or a folder above it. A file that nothing names, such as pyproject.toml, chooses all.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import click

ROOTS: Final = ("jobs", "master", "workers", "db", ".")  # of packages, as in pyproject.toml
# Pages and rules for people; tests/unit/test_docs.py reads all of them.
PROSE: Final = (".md", ".png", ".svg")
# Without a name of their own in any module, these can change every test.
EVERYTHING: Final = ("pyproject.toml", "requirements.lock", "setup.py", ".ci/setup")
SCRIPTS: Final = {"swingbot": "swingbot.app.cli", "swingbot-worker": "swingbot_worker.entry"}


@dataclass
class Module:
    """A Python file: the files that it imports, and the words of its strings."""

    path: str
    imports: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Choice:
    """A test file, and what leads from a changed file to it."""

    test: str
    why: tuple[str, ...]


def is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_")


def module_names(paths: Iterable[str]) -> dict[str, str]:
    """Dotted name of each module -> its file."""
    names = {}
    for path in paths:
        parts = PurePosixPath(path).with_suffix("").parts
        if parts[0] in ROOTS:
            parts = parts[1:]
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def read_module(path: str, text: str, names: Mapping[str, str]) -> Module:
    """Imports anywhere in the file count, and strings that are names of modules or programs."""
    module = Module(path)
    tree = ast.parse(text)
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}  # docstrings
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            module.imports |= _files([alias.name for alias in node.names], names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            wanted = [f"{node.module}.{alias.name}" for alias in node.names]
            module.imports |= _files([node.module, *wanted], names)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
        ):
            module.words |= set(re.findall(r"[\w.-]+", node.value))
    named = {word for word in module.words if "." in word and word in names}
    if not path.startswith(ROOTS[:-1]):  # elsewhere they are words like others
        named |= {SCRIPTS[script] for script in SCRIPTS.keys() & module.words}
    module.imports |= _files(named, names)
    return module


def _files(modules: Iterable[str], names: Mapping[str, str]) -> set[str]:
    """The files that importing these executes, packages above them included."""
    found = set()
    for module in modules:
        parts = module.split(".")
        found |= {
            names[name]
            for end in range(1, len(parts) + 1)
            if (name := ".".join(parts[:end])) in names
        }
    return found


def data_name(path: str, packages: set[str]) -> str:
    """By what a module names a data file: the first folder that is no package, or the file."""
    parts = PurePosixPath(path).parts
    for end in range(1, len(parts)):
        if parts[end - 1] not in (*ROOTS, "tests") and "/".join(parts[:end]) not in packages:
            return parts[end - 1]
    return parts[0] if parts[0] in ROOTS and len(parts) > 1 else parts[-1]


def choose(files: Mapping[str, str | None], changed: Iterable[str]) -> list[Choice]:
    """The tests that `changed` can reach. `files` has the text of each Python file."""
    changed = list(changed)
    python = {path: text for path, text in files.items() if path.endswith(".py")}
    # of modules that are gone, too
    names = module_names({*python, *(path for path in changed if path.endswith(".py"))})
    modules = {path: read_module(path, text or "", names) for path, text in python.items()}
    users: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for used in module.imports:
            users[used].add(module.path)
    for path in filter(is_test, modules):
        for folder in PurePosixPath(path).parents:
            users[str(folder / "conftest.py")].add(path)
    packages = {str(PurePosixPath(path).parent) for path in python if path.endswith("__init__.py")}
    reached: dict[str, tuple[str, ...]] = {}
    for path in changed:
        _reach(path, modules, users, packages, reached)
    return [Choice(test, reached[test]) for test in sorted(filter(is_test, reached))]


def _reach(
    path: str,
    modules: Mapping[str, Module],
    users: Mapping[str, set[str]],
    packages: set[str],
    reached: dict[str, tuple[str, ...]],
) -> None:
    """Breadth first, so that the way from the change to a test is a shortest one."""
    front: dict[str, tuple[str, ...]] = {path: (path,)}
    if path in EVERYTHING:
        front |= {test: (path, test) for test in filter(is_test, modules)}
    elif not path.endswith(".py"):
        name = PurePosixPath(path).name
        keys = {name} if "." in name else set()
        if not path.endswith(PROSE):
            keys.add(data_name(path, packages))
        front |= {
            module.path: (path, module.path) for module in modules.values() if keys & module.words
        }
        if path.endswith(PROSE):
            front["tests/unit/test_docs.py"] = (path, "tests/unit/test_docs.py")
    while front:
        front = {where: why for where, why in front.items() if where not in reached}
        reached |= front
        front = {
            user: (*why, user)
            for where, why in front.items()
            for user in sorted(users.get(where, ()))
        }


def changes(since: str) -> list[str]:
    """Files that differ from the common ancestor with `since`, new ones included."""
    base = _git("merge-base", since, "HEAD").strip()
    new = _git("ls-files", "--others", "--exclude-standard")
    return sorted({*_git("diff", "--name-only", "--no-renames", base).split(), *new.split()})


def default_base() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--verify", "--quiet", "origin/main"],
        check=False,
        stdout=subprocess.DEVNULL,
    )
    return "origin/main" if done.returncode == 0 else "main"


def work_tree() -> dict[str, str | None]:
    names = _git("ls-files", "--cached", "--others", "--exclude-standard").split("\n")
    return {
        name: Path(name).read_text() if name.endswith(".py") else None
        for name in names
        if name and Path(name).is_file()
    }


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def described(choices: Iterable[Choice]) -> Iterator[str]:
    for choice in choices:
        way = " <- ".join(reversed(choice.why[:-1]))
        yield f"{choice.test}  {f'<- {way}' if way else 'changed'}"


@click.command(help=__doc__)
@click.argument("rev", required=False)
@click.option("--list", "only_list", is_flag=True, help="Run nothing.")
@click.option("--in", "folders", multiple=True, metavar="FOLDER", help="Run only tests below it.")
def main(rev: str | None, only_list: bool, folders: tuple[str, ...]) -> None:
    changed = changes(rev or default_base())
    files = work_tree()
    choices = choose(files, changed)
    for line in described(choices):
        print(line)
    tests = [choice.test for choice in choices]
    print(f"{len(changed)} files changed; {len(tests)} of {sum(map(is_test, files))} test files")
    # the long tests of a lab are those of `make test-lab`
    tests = [test for test in tests if not test.startswith("tests/lab/") or "_short" in test]
    if folders:
        tests = [test for test in tests if any(Path(test).is_relative_to(one) for one in folders)]
    if tests and not only_list:
        words = ["-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder", *tests]
        sys.exit(subprocess.run([sys.executable, "-m", "pytest", *words], check=False).returncode)


if __name__ == "__main__":
    main()
