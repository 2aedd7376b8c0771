"""Run a tree's own scripts/get_maintainer.pl on one commit: an untrusted program on untrusted data,
so it runs behind the walls of an untrusted build or not at all.

Script and MAINTAINERS are those of the tree's base, which the author of the commit cannot write.
The walls are the worker's (`swingbot_worker.walls.confined`): another process sets them up, and its
answer is read as data.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from swingbot.adapters import git_limits, limits, process
from swingbot.core.mail.recipients import (
    BadMaintainers,
    MaintainerEntry,
    NoMaintainers,
    read_maintainers,
)

_SETTING_UP_SECONDS: Final = 60.0  # more, for the walls
_PROCESSES: Final = 32
_SCRIPT: Final = "scripts/get_maintainer.pl"
_WANTED: Final = (
    (_SCRIPT, True),
    ("MAINTAINERS", True),
    (".get_maintainer.ignore", False),
    (".mailmap", False),
)
_OPTIONS: Final = (
    "--no-tree",
    "--nogit",
    "--nogit-fallback",
    "--norolestats",
    "--roles",
    "--nokeywords",
    "--nofixes",
)


def maintainers_of(
    mirror: Path, commit: str, base: str, *, seconds: float = limits.MAINTAINERS_SECONDS
) -> tuple[MaintainerEntry, ...]:
    """Return the maintainers and lists that the tree at `base` names for the patch of `commit`.

    Both are commits of the bare repository `mirror`. Raises NoMaintainers.
    """
    with tempfile.TemporaryDirectory(prefix="swingbot-maintainers-") as directory:
        place = Path(directory) / "tree"
        place.mkdir()
        _take_out(mirror, commit, base, place, seconds)
        place.chmod(0o755)
        answer = _confined(place, ["perl", f"./{_SCRIPT}", *_OPTIONS, "patch"], seconds)
    text = str(answer.get("text", ""))
    if answer.get("problem") is not None:
        raise NoMaintainers(f"get_maintainer.pl: {_last_line(str(answer['problem']))}")
    if answer.get("rc") != 0:
        why = _last_line(text) or "it printed no reason"
        raise NoMaintainers(f"get_maintainer.pl ended with {answer.get('rc')}: {why}")
    try:
        return read_maintainers(text)
    except BadMaintainers as error:
        raise NoMaintainers(str(error)) from None


def no_walls() -> str | None:
    """Return why this host does not allow the walls; None if it does."""
    with tempfile.TemporaryDirectory(prefix="swingbot-walls-") as directory:
        place = Path(directory) / "tree"
        place.mkdir(mode=0o755)
        answer = _confined(place, ["perl", "-e", "0"], limits.MAINTAINERS_SECONDS)
    problem = answer.get("problem")
    if problem is not None:
        return str(problem)
    return None if answer.get("rc") == 0 else f"perl ended with {answer.get('rc')}"


def _confined(place: Path, argv: Sequence[str], seconds: float) -> dict[str, Any]:
    """Run `argv` in `place` behind the walls; its answer is hostile data."""
    walls = {
        "seconds": seconds,
        "memory-mb": limits.MAINTAINERS_MEMORY_MIB,
        "processes": _PROCESSES,
        "output-kb": limits.MAINTAINERS_OUTPUT_KIB,
    }
    ended = process.run(
        [
            *(sys.executable, "-P", "-m", "swingbot_worker.walls.confined"),
            *(f"--{name}={value}" for name, value in walls.items()),
            str(place),
            "--",
            *argv,
        ],
        timeout=seconds + _SETTING_UP_SECONDS,
        cwd=place.parent,
    )
    try:
        answer = json.loads(ended.out)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        why = _last_line(ended.err) or f"status {ended.rc}"
        return {"problem": f"the walls of builds are not available here ({why})"}
    return answer


def _take_out(mirror: Path, commit: str, base: str, place: Path, seconds: float) -> None:
    """Extract the script and its input files as of `base`, and the patch of `commit`.

    Raises NoMaintainers for a merge or a root commit, which have none.
    """
    parents = _git(
        mirror, place, "rev-list", "--parents", "-n", "1", f"{commit}^{{commit}}", seconds=seconds
    )
    if parents is None:
        raise NoMaintainers(f"{commit[:40]} is not a commit in this mirror")
    count = len(parents.split()) - 1
    if count != 1:
        raise NoMaintainers(
            "the commit is a merge: it has no patch of its own"
            if count
            else "the commit has no parent: its patch is the whole tree"
        )
    (place / "scripts").mkdir()
    for name, needed in _WANTED:
        text = _git(mirror, place, "cat-file", "blob", f"{base}:{name}", seconds=seconds)
        if text is None and needed:
            raise NoMaintainers(
                f"the tree's base {base[:12]} has no {name}, or it is larger than"
                f" {limits.PATCH_BYTES >> 20} MB"
            )
        if text is not None:
            (place / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    patch = _git(
        mirror,
        place,
        "diff-tree",
        "-p",
        "--no-ext-diff",
        "--no-textconv",
        "--no-commit-id",
        commit,
        seconds=seconds,
    )
    if patch is None:
        raise NoMaintainers(f"the commit's patch is larger than {limits.PATCH_BYTES >> 20} MB")
    (place / "patch").write_text(patch, encoding="utf-8", errors="surrogateescape")


def _git(mirror: Path, place: Path, *arguments: str, seconds: float) -> str | None:
    """Return the output of git; None if it fails, or if the output exceeds the limit."""
    argv = ["git", "--git-dir", str(mirror), *arguments]
    ended = process.run(
        argv, timeout=seconds, cwd=place, env=_environment(place), within=git_limits.WRITING_A_PATCH
    )
    return ended.raw.decode("utf-8", "surrogateescape") if ended.rc == 0 else None


def _environment(place: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": str(place),
        "GIT_CONFIG_NOSYSTEM": "1",
    }


def _last_line(text: str) -> str:
    return " ".join(text.encode("ascii", "replace").decode().strip().split("\n")[-1].split())[:200]
