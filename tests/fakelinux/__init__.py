"""A kernel tree in miniature, whose real `make` takes a fraction of a second.

It answers the targets that a kernel build uses (tinyconfig, merge_config.sh, olddefconfig,
bzImage), compiles a handful of C files for real, and its image says in plain text what a simulated
testbox wants to know: a line `speed=<n>` and a line `boots=yes` or `boots=no`.

    commits = [FakeCommit(), FakeCommit(speed=82), FakeCommit(kind="broken")]
    ids = make_fakelinux(tmp_path / "linux", commits)
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

SKELETON = Path(__file__).parent / "skeleton"
START_SPEED = 100
BEGAN = 1_767_225_600  # of the first commit: 2026-01-01 00:00 UTC

# What a commit changes:
#   code        the speed, if it says one; else something in the image that has no effect
#   comment     nothing in the image
#   header      a header that most files include
#   broken      it does not compile (mended by the next commit that is not broken)
#   unbootable  the image says boots=no (mended likewise)
#   slow        each object is half-written for half a minute before it is compiled (mended
#               likewise): for killing builds
Kind = Literal["code", "comment", "header", "broken", "unbootable", "slow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeCommit:
    """One commit to make. Without a title it is called by its number; `speed` holds from here
    on."""

    kind: Kind = "code"
    speed: float | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Everything that differs between two commits."""

    number: int = 0
    speed: float = START_SPEED
    code: int = 0
    comment: int = 0
    header: int = 0
    broken: bool = False
    boots: bool = True
    slow: bool = False


def make_fakelinux(path: Path, commits: Sequence[FakeCommit] | int = 3) -> list[str]:
    """Make a git repository (branch main, not bare) at `path`; returns the commit ids, the base's
    first.

    An integer makes so many commits of kind code. Equal arguments give equal ids, and a process
    makes them once.
    """
    given = tuple([FakeCommit()] * commits if isinstance(commits, int) else commits)
    made, ids = _made(given)
    shutil.copytree(made, path, symlinks=True)
    return list(ids)


@cache
def _made(commits: tuple[FakeCommit, ...]) -> tuple[Path, tuple[str, ...]]:
    """A repository to be copied, and its commits."""
    place = Path(tempfile.mkdtemp(prefix="swingbot-fakelinux-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    path = place / "linux"
    path.mkdir()
    states, titles = [_State()], ["base"]
    for commit in commits:
        states.append(_after(states[-1], commit))
        titles.append(commit.title or str(states[-1].number))
    _git(path, "init", "-q", "-b", "main")
    _git(path, "fast-import", "--quiet", stdin="".join(map(_imported, states, titles)))
    _git(path, "reset", "-q", "--hard")
    return path, tuple(_git(path, "rev-list", "--reverse", "main").split())


def _imported(state: _State, title: str) -> str:
    """The commit as fast-import takes it; one process makes all of them."""
    who = f"{_IDENTITY['NAME']} <{_IDENTITY['EMAIL']}> {BEGAN + state.number % 3600} +0000"
    files = "".join(
        f"M 100644 inline {name}\n{_data(text)}" for name, text in _files(state).items()
    )
    parent = "" if state.number else "reset refs/heads/main\n"
    head = f"{parent}commit refs/heads/main\nauthor {who}\ncommitter {who}\n"
    return f"{head}{_data(title + chr(10))}{files}\n"


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def add_commits(path: Path, commits: Sequence[FakeCommit]) -> list[str]:
    """Add commits to what is checked out in a repository that `make_fakelinux` made; returns
    their ids."""
    ids = []
    for commit in commits:
        state = _after(_state_of(path), commit)
        _commit(path, state, commit.title or str(state.number))
        ids.append(_head(path))
    return ids


def speed_of(image: bytes) -> float:
    """The speed that a simulated testbox measures on this image."""
    found = re.search(rb"\nspeed=([\d.]+)\n", image)
    assert found, "not a fakelinux image"
    return float(found[1])


def boots(image: bytes) -> bool:
    """Whether a simulated testbox comes up with this image."""
    return b"\nboots=yes\n" in image


def _after(state: _State, commit: FakeCommit) -> _State:
    return replace(
        state,
        number=state.number + 1,
        speed=state.speed if commit.speed is None else commit.speed,
        code=state.code + (commit.kind == "code" and commit.speed is None),
        comment=state.comment + (commit.kind == "comment"),
        header=state.header + (commit.kind == "header"),
        broken=commit.kind == "broken",
        boots=commit.kind != "unbootable",
        slow=commit.kind == "slow",
    )


def _state_of(path: Path) -> _State:
    return _State(**json.loads((path / "state.json").read_text()))


def _commit(path: Path, state: _State, title: str) -> None:
    for name, text in _files(state).items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    _git(path, "add", "-A", "-f")
    _git(path, "commit", "-q", "-m", title, number=state.number)


def _files(state: _State) -> dict[str, str]:
    values: dict[str, object] = {
        "SPEED": state.speed,
        "CODE": state.code,
        "COMMENT": state.comment,
        "HEADER": state.header,
        "BROKEN": "this does not compile" if state.broken else "",
        "BOOTS": "yes" if state.boots else "no",
        "SLOW": "echo half-written > $@; exec sleep 30" if state.slow else ":",
    }
    files = {"state.json": json.dumps(asdict(state)) + "\n"}
    for name, text in _skeleton().items():
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        files[name] = text
    return files


@cache
def _skeleton() -> dict[str, str]:
    return {
        str(file.relative_to(SKELETON)): file.read_text()
        for file in sorted(SKELETON.rglob("*"))
        if file.is_file()
    }


def _head(path: Path) -> str:
    return _git(path, "rev-parse", "HEAD")


def _git(path: Path, *arguments: str, number: int = 0, stdin: str | None = None) -> str:
    date = f"{BEGAN + number % 3600} +0000"
    who = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in _IDENTITY.items()
    }
    env = {
        **os.environ,
        **who,
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_DATE": date,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return subprocess.run(
        ["git", "-C", str(path), *arguments],
        check=True,
        env=env,
        text=True,
        input=stdin,
        stdout=subprocess.PIPE,
    ).stdout.strip()


_IDENTITY = {"NAME": "A Developer", "EMAIL": "developer@example.org"}
