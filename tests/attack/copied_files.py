"""A patch of a few KB whose files are copies of one large file, and the patch of such a commit."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

from swingbot.adapters.git import Mirror
from swingbot.core.patchset.read import read_file
from swingbot.service.ports import GitError
from tests.attack.hostile_repository import git
from tests.attack.target import Result, Target

NAME: Final = "copied-files"
WANTED: Final = "refused before git applies it, with nothing left; its patch is asked for once"
COPIES: Final = (60, 40)
FILE_LINES: Final = 1_000_000


def run(target: Target) -> Result:
    """Apply such patches; ask twice for the patch of a commit of 40 copies."""
    with tempfile.TemporaryDirectory(prefix="swingbot-attack-") as directory:
        place = Path(directory)
        base, copied = _repository(place / "linux")
        mirror = Mirror(place / "mirror.git")
        mirror.fetch_branch("t", str(place / "linux"), "main")
        before, held, lines = _left(mirror.path), True, []
        for copies in COPIES:
            began = time.monotonic()
            with mirror.quarantine() as aside:
                answer = _applied(aside, base, copies)
                written = _left(mirror.path) - before
            held &= answer.startswith("refused: patch 1/1") and "MiB together" in answer
            held &= (written, _left(mirror.path)) == (0, before)
            took = time.monotonic() - began
            lines.append(
                f"{copies} copies {answer[:7]} in {took:.1f} s, {written >> 20} MB written"
            )
        for asked in ("first", "second"):
            began = time.monotonic()
            answer = _patch(mirror, copied)
            took = time.monotonic() - began
            held &= "MiB together" in answer
            lines.append(f"{asked} patch of a commit in {took:.3f} s")
        held &= _left(mirror.path) == before
    return Result(held, "; ".join(lines))


def _applied(mirror: Mirror, base: str, copies: int) -> str:
    files = (
        f"diff --git a/big b/c{n}\nsimilarity index 99%\ncopy from big\ncopy to c{n}\n"
        f"--- a/big\n+++ b/c{n}\n@@ -1,2 +1,2 @@\n-{_line(0)}+copy {n}\n {_line(1)}"
        for n in range(copies)
    )
    try:
        mirror.apply_series(base, read_file("copies", "".join(files).encode()).patches)
    except GitError as error:
        return f"refused: {error}"
    return "applied"


def _patch(mirror: Mirror, commit: str) -> str:
    try:
        return f"{len(mirror.patch(commit))} bytes"
    except GitError as error:
        return str(error)


def _line(number: int) -> str:
    return f"#define R {number:09d}\n"


def _repository(path: Path) -> tuple[str, str]:
    """Make a repository of a large file and a commit of 40 copies of it; return both commits."""
    path.mkdir()
    text = "".join(map(_line, range(FILE_LINES)))
    copies = "".join(f"M 100644 :1 c{number}\n" for number in range(40))
    who = "committer A <a@example.org> 1700000000 +0000\ndata 2\nx\n"
    stream = (
        f"blob\nmark :1\ndata {len(text)}\n{text}\n"
        f"commit refs/heads/main\nmark :2\n{who}M 100644 :1 big\n"
        f"commit refs/heads/main\nmark :3\n{who}from :2\n{copies}"
    )
    git(path, "init", "--quiet", "--bare")
    git(path, "fast-import", "--quiet", stdin=stream)
    return git(path, "rev-parse", "main~1"), git(path, "rev-parse", "main")


def _left(path: Path) -> int:
    """Bytes of all files below `path`."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
