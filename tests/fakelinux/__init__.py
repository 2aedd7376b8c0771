"""A kernel tree in miniature, whose real `make` takes a fraction of a second.

It answers the targets that a kernel build uses (tinyconfig, merge_config.sh, olddefconfig,
bzImage), compiles a handful of C files for real, and its image says in plain text what a simulated
testbox wants to know: a line `speed=<n>` and a line `boots=yes` or `boots=no`.

    commits = [FakeCommit(), FakeCommit(speed=82), FakeCommit(kind="broken")]
    ids = make_fakelinux(tmp_path / "linux", commits)
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

SKELETON = Path(__file__).parent / "skeleton"
START_SPEED = 100

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
    speed: int | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Everything that differs between two commits."""

    number: int = 0
    speed: int = START_SPEED
    code: int = 0
    comment: int = 0
    header: int = 0
    broken: bool = False
    boots: bool = True
    slow: bool = False


def make_fakelinux(path: Path, commits: Sequence[FakeCommit] | int = 3) -> list[str]:
    """Make a git repository (branch main, not bare) at `path`; returns the commit ids, the base's
    first.

    An integer makes so many commits of kind code. Equal arguments give equal ids.
    """
    path.mkdir(parents=True)
    _git(path, "init", "-q", "-b", "main")
    _commit(path, _State(), "base")
    return [
        _head(path),
        *add_commits(path, [FakeCommit()] * commits if isinstance(commits, int) else commits),
    ]


def add_commits(path: Path, commits: Sequence[FakeCommit]) -> list[str]:
    """Add commits to what is checked out in a repository that `make_fakelinux` made; returns
    their ids."""
    ids = []
    for commit in commits:
        state = _after(_state_of(path), commit)
        _commit(path, state, commit.title or str(state.number))
        ids.append(_head(path))
    return ids


def speed_of(image: bytes) -> int:
    """The speed that a simulated testbox measures on this image."""
    found = re.search(rb"\nspeed=(\d+)\n", image)
    assert found, "not a fakelinux image"
    return int(found[1])


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
    values: dict[str, object] = {
        "SPEED": state.speed,
        "CODE": state.code,
        "COMMENT": state.comment,
        "HEADER": state.header,
    }
    values |= {
        "BROKEN": "this does not compile" if state.broken else "",
        "BOOTS": "yes" if state.boots else "no",
    }
    values |= {"SLOW": "echo half-written > $@; exec sleep 30" if state.slow else ":"}
    for template in sorted(SKELETON.rglob("*")):
        if template.is_file():
            text = template.read_text()
            for name, value in values.items():
                text = text.replace(f"@{name}@", str(value))
            target = path / template.relative_to(SKELETON)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    (path / "state.json").write_text(json.dumps(asdict(state)) + "\n")
    _git(path, "add", "-A", "-f")
    _git(path, "commit", "-q", "-m", title, number=state.number)


def _head(path: Path) -> str:
    return _git(path, "rev-parse", "HEAD")


def _git(path: Path, *arguments: str, number: int = 0) -> str:
    date = f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z"
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
        ["git", "-C", str(path), *arguments], check=True, env=env, text=True, stdout=subprocess.PIPE
    ).stdout.strip()


_IDENTITY = {"NAME": "A Developer", "EMAIL": "developer@example.org"}
