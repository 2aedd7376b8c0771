"""What counts as a line of code."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path, PurePosixPath

import click
import pytest

from tests import code_lines

PYTHON = '''#!/usr/bin/python3
"""A docstring
of two lines."""

QUERY = """SELECT 1

FROM x"""  # three lines of a token


async def f(
    x: int,  # a comment beside code
) -> int:
    """Another."""
    # a comment
    return x


class A:
    "One more."

    "not a docstring"
'''


def test_a_line_of_python_has_a_token_that_is_neither_comment_nor_docstring() -> None:
    # QUERY 3, f 4, A 2
    assert code_lines.python_lines(PYTHON) == 9


@pytest.mark.parametrize(
    ("kind", "text", "lines"),
    [
        ("SQL", "-- why\nSELECT 1; -- beside\n\n/* a\nb */\nSELECT 2;\n", 2),
        ("YAML", "# why\na: 1 # beside\n\nb:\n", 2),
        ("shell", "#!/bin/sh\n# why\necho x\n", 1),
        ("templates", "<!-- a\n-->\n{# b #}\n<p>x</p>\n/* c */ p { }\n// d\n", 2),
    ],
)
def test_lines_of_other_languages_are_neither_blank_nor_comment(
    kind: str, text: str, lines: int
) -> None:
    assert code_lines.other_lines(text, kind) == lines


@pytest.mark.parametrize(
    ("path", "content", "kind", "package", "part"),
    [
        ("master/swingbot/core/stats/x.py", b"", "Python", "master/swingbot/core", "product"),
        ("master/swingbot/__init__.py", b"", "Python", "master/swingbot", "product"),
        ("db/migrations/0001.sql", b"", "SQL", "db/migrations", "product"),
        ("jobs/programs/netperf/run", b"#!/bin/sh\n", "shell", "jobs", "product"),
        ("jobs/programs/netperf/samples/1.raw/stdout", b"#!/bin/sh\n", None, "jobs", "product"),
        ("Makefile", b"", "shell", "(top)", "product"),
        ("benchmarks/meter.py", b"", "Python", "benchmarks", "benchmarks"),
        ("tests/golden/remake.py", b"", "Python", "tests/golden", "tests"),
        ("tests/golden/published.yaml", b"", None, "tests/golden", "tests"),
        ("docs/bisection.svg", b"", None, "docs", "product"),
    ],
)
def test_each_file_has_a_language_and_a_package(
    path: str, content: bytes, kind: str | None, package: str, part: str
) -> None:
    file = PurePosixPath(path)
    assert code_lines.kind_of(file, content) == kind
    assert code_lines.package_of(file) == package
    assert code_lines.part_of(package) == part


def test_two_revisions_are_compared() -> None:
    before = Counter({("master/swingbot/core", "Python"): 100, ("db", "SQL"): 5})
    after = Counter({("master/swingbot/core", "Python"): 60, ("db", "SQL"): 25})
    rows = list(code_lines.table({"old": before, "new": after}))
    totals = [row.split()[3:] for row in rows if row.startswith("all of product")]
    assert totals == [["100", "5"], ["60", "25"], ["-40", "20"]]


def test_the_work_tree_and_a_commit_are_counted_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("db").mkdir()
    Path("db/x.py").write_text("A = 1\n")
    Path(".gitignore").write_text("build/\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *who, *words], check=True)
    Path("db/y.py").write_text("B = 2\nC = 3\n")
    Path("build").mkdir()
    Path("build/z.py").write_text("D = 4\n")
    assert code_lines.counted(code_lines.files_at("HEAD")) == {("db", "Python"): 1}
    assert code_lines.counted(code_lines.work_tree()) == {("db", "Python"): 3}
    with pytest.raises(click.UsageError, match="nothing"):
        next(code_lines.files_at("nothing"))
