"""Small git repositories for `swingbot bisect run`, and tables of what each of their commits
measures.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

BENCH = Path(__file__).parent / "fakes" / "noisy_bench.py"
IDENTITY = "Some Body <some@body> 1700000000 +0000"


_WHO = ("-c", "user.name=Some Body", "-c", "user.email=some@body")


def git(path: Path, *words: str, stdin: bytes = b"") -> str:
    command = ["git", "-C", str(path), *_WHO, *words]
    done = subprocess.run(command, check=True, capture_output=True, input=stdin)
    return done.stdout.decode().strip()


def make_repo(
    path: Path, commits: int, merges: Mapping[int, Sequence[int]] | None = None
) -> list[str]:
    """A repository with `commits` commits after the first on branch main, in one call of git.

    Returns their ids, the first one's too.

    Commit i writes its number into `number`, and is called `commit i`.
    `merges[i]`: the branch that commit i merges has these numbers as commits,
    forked two commits before; their ids follow those of main in the answer,
    in the order of the keys.
    """
    subprocess.run(["git", "init", "--quiet", "--initial-branch=main", str(path)], check=True)
    stream: list[str] = []
    extra: list[int] = []
    for i in range(commits + 1):
        side = list((merges or {}).get(i, ()))
        for at, number in enumerate(side):
            parent = f"from :{side[at - 1] + 1 if at else i - 1}\n"
            stream.append(_commit(f"side{i}", number + 1, number, parent, f"side-{number}"))
            extra.append(number)
        merge = f"merge :{side[-1] + 1}\n" if side else ""
        stream.append(_commit("main", i + 1, i, (f"from :{i}\n" if i else "") + merge, "number"))
    git(path, "fast-import", "--quiet", "--export-marks=.git/marks", stdin="".join(stream).encode())
    git(path, "reset", "--quiet", "--hard", "main")
    marks = dict(line.split() for line in (path / ".git" / "marks").read_text().splitlines())
    return [marks[f":{i + 1}"] for i in [*range(commits + 1), *extra]]


def _commit(branch: str, mark: int, number: int, parents: str, file: str) -> str:
    message = f"commit {number}"
    return (
        f"commit refs/heads/{branch}\nmark :{mark}\nauthor {IDENTITY}\ncommitter {IDENTITY}\n"
        f"data {len(message)}\n{message}\n{parents}"
        f"M 100644 inline {file}\ndata {len(str(number)) + 1}\n{number}\n\n"
    )


def steps(
    ids: Sequence[str], changes: Mapping[int, float], level: float = 100.0
) -> dict[str, dict[str, Any]]:
    """Commit -> its level, where commit i multiplies it by 1 + changes[i]."""
    table: dict[str, dict[str, Any]] = {}
    for i, sha in enumerate(ids):
        level *= 1.0 + changes.get(i, 0.0)
        table[sha] = {"level": level}
    return table


def bench(path: Path, commits: Mapping[str, Mapping[str, Any]], **world: Any) -> list[str]:
    """CMD that draws from this world, whose table is written to `path`."""
    path.write_text(json.dumps({"seed": 1, "commits": commits, "run_sd": 0.02, **world}))
    return [sys.executable, "-S", str(BENCH), str(path)]
