"""Count lines of code per package, in the work tree or in a commit.

\b
    python -m tests.code_lines                          # the work tree
    python -m tests.code_lines --at v0.1                # a commit
    python -m tests.code_lines --at v0.1 --at HEAD      # two commits, and the difference

A line of Python counts if it has a token that is neither comment nor docstring. Lines of SQL,
YAML, templates (with their CSS and JavaScript) and shell count if they are neither blank nor
comment; they stand beside, so that code that moves from one language into another is seen.
Goldens and samples of programs are data and do not count. The product is what is neither in
`tests/` nor in `benchmarks/`.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import click

KINDS: Final = ("Python", "SQL", "YAML", "templates", "shell")
_SUFFIXES: Final = {
    ".py": "Python",
    ".sql": "SQL",
    ".yaml": "YAML",
    ".yml": "YAML",
    ".html": "templates",
    ".css": "templates",
    ".js": "templates",
    ".j2": "templates",
    ".sh": "shell",
    ".awk": "shell",
}
_DATA: Final = re.compile(r"^docs/|^tests/golden/(?!.*\.py$)|/samples/")
# Packages whose folders are counted one by one.
_DIVIDED: Final = (
    "master/swingbot",
    "workers/swingbot_worker",
    "jobs/swingbot_jobs",
    "db",
    "tests",
)
_NOT_CODE: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_BLOCKS: Final = re.compile(r"/\*.*?\*/|<!--.*?-->|\{#.*?#\}", re.DOTALL)
_COMMENTS: Final = {"SQL": "--", "YAML": "#", "shell": "#", "templates": "//"}

Counts = Counter[tuple[str, str]]  # (package, kind) -> lines


def python_lines(text: str) -> int:
    """Lines with a token that is neither comment nor docstring."""
    docstrings = set(_docstring_lines(ast.parse(text)))
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NOT_CODE
        and not (token.type == tokenize.STRING and token.start[0] in docstrings)
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines)


def _docstring_lines(module: ast.Module) -> Iterator[int]:
    for node in ast.walk(module):
        match node:
            case (
                ast.Module(body=[ast.Expr(value=ast.Constant(value=str())) as first, *_])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str())) as first, *_])
                | ast.FunctionDef(body=[ast.Expr(value=ast.Constant(value=str())) as first, *_])
                | ast.AsyncFunctionDef(
                    body=[ast.Expr(value=ast.Constant(value=str())) as first, *_]
                )
            ):
                yield first.lineno


def other_lines(text: str, kind: str) -> int:
    """Lines that are neither blank nor comment."""
    if kind in ("SQL", "templates"):
        text = _BLOCKS.sub(lambda block: "\n" * block[0].count("\n"), text)
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith(_COMMENTS[kind]) for line in lines)


def kind_of(path: PurePosixPath, content: bytes) -> str | None:
    """The language of a file, or None for one that is not code."""
    if _DATA.search(str(path)):
        return None
    if path.name == "Makefile":
        return "shell"
    if not path.suffix and re.match(rb"#!.*\b(ba|da)?sh\b", content):
        return "shell"
    return _SUFFIXES.get(path.suffix)


def package_of(path: PurePosixPath) -> str:
    """`master/swingbot/core` for a file anywhere below it, `benchmarks`, `(top)`."""
    for package in _DIVIDED:
        if path.is_relative_to(package):
            rest = path.relative_to(package).parts
            return f"{package}/{rest[0]}" if len(rest) > 1 else package
    return "(top)" if len(path.parts) == 1 else path.parts[0]


def counted(files: Iterator[tuple[PurePosixPath, bytes]]) -> Counts:
    counts: Counts = Counter()
    for path, content in files:
        kind = kind_of(path, content)
        if kind is not None:
            text = content.decode()
            lines = python_lines(text) if kind == "Python" else other_lines(text, kind)
            counts[package_of(path), kind] += lines
    return counts


def work_tree() -> Iterator[tuple[PurePosixPath, bytes]]:
    """Every tracked file that exists, and every new file that git does not ignore."""
    names = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")
    for name in sorted(set(map(bytes.decode, names)) - {""}):
        path = Path(name)
        if path.is_file() and not path.is_symlink():
            yield PurePosixPath(name), path.read_bytes()


def files_at(commit: str) -> Iterator[tuple[PurePosixPath, bytes]]:
    """The regular files of a commit. Raises click.UsageError if there is no such commit."""
    try:
        tree = _git("ls-tree", "-r", "-z", f"{commit}^{{commit}}").decode()
    except subprocess.CalledProcessError as error:
        raise click.UsageError(error.stderr.decode().strip()) from None
    entries = [entry.partition("\t") for entry in tree.split("\0") if entry.startswith("100")]
    wanted = "".join(f"{entry.split()[2]}\n" for entry, _, _ in entries)
    content = io.BytesIO(_git("cat-file", "--batch", stdin=wanted.encode()))
    for _, _, name in entries:
        size = int(content.readline().split()[2])
        yield PurePosixPath(name), content.read(size + 1)[:size]


def _git(*words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", *words], input=stdin, capture_output=True, check=True).stdout


def total(counts: Counts, part: str) -> Counts:
    """The sum over the packages of `part`, under its name."""
    result: Counts = Counter()
    for (package, kind), lines in counts.items():
        if part_of(package) == part:
            result[part, kind] += lines
    return result


def part_of(package: str) -> str:
    """What `package` is summed up with."""
    folder = package.partition("/")[0]
    return folder if folder in ("tests", "benchmarks") else "product"


def table(columns: dict[str, Counts]) -> Iterator[str]:
    """A row for each package and totals; each revision has one column for each kind."""
    packages = sorted({package for counts in columns.values() for package, _ in counts})
    width = max(len(package) for package in packages)
    if len(columns) == 2:
        before, after = columns.values()
        difference = Counter(after)
        difference.subtract(before)
        columns = {**columns, "difference": difference}
    for title, counts in columns.items():
        yield f"{title:{width}}" + "".join(f"{kind:>11}" for kind in KINDS)
        for part in ("product", "benchmarks", "tests"):
            inside = [package for package in packages if part_of(package) == part]
            if len(inside) > 1:
                yield from (_row(package, width, counts) for package in inside)
            yield _row(part, width, total(counts, part), f"all of {part}")
        yield ""


def _row(package: str, width: int, counts: Counts, title: str = "") -> str:
    cells = "".join(f"{counts[package, kind] or '':>11}" for kind in KINDS)
    return f"{title or package:{width}}{cells}"


@click.command(help=__doc__)
@click.option("--at", "commits", multiple=True, metavar="REV", help="Count this commit.")
def main(commits: tuple[str, ...]) -> None:
    columns = {commit: counted(files_at(commit)) for commit in commits}
    for line in table(columns or {"work tree": counted(work_tree())}):
        print(line)


if __name__ == "__main__":
    main()
