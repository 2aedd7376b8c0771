"""A branch of patches on a moving base, rebuilt as often as a test says:
a real git repository, written with `git fast-import`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, kw_only=True)
class FakePatch:
    """A patch that owns the file mm/NAME.c.

    Its `text` is the version; one with `speed=0.9` in it makes kernels that slow from there on.
    """

    name: str
    text: str = ""

    @property
    def subject(self) -> str:
        return f"mm/{self.name}: do something"

    @property
    def path(self) -> str:
        return f"mm/{self.name}.c"


@dataclass(kw_only=True)
class RebasedTree:
    """The repository at `path`.

    Branch `upstream` grows by `advance`, branch `mm-unstable` is rebuilt on it by `rebuild`.
    """

    path: Path
    upstream: list[str] = field(default_factory=list)
    clock: int = 1_700_000_000

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", "--bare", self.path], check=True)
        files = {"Makefile": "all:", "Kconfig": "mainmenu", "init/main.c": "int main;"}
        self.upstream += self._commits("upstream", None, [("Linux", files)])

    def advance(self, commits: int, text: str = "") -> None:
        """Commits of others on the base, each with a line of `text`."""
        number = len(self.upstream)
        new = [
            (
                f"kernel: change {number + i}",
                {f"kernel/u{number + i}.c": f"int u{number + i};\n{text}\n"},
            )
            for i in range(commits)
        ]
        self.upstream += self._commits("upstream", self.upstream[-1], new)

    def rebuild(self, patches: Sequence[FakePatch]) -> list[str]:
        """The branch is these patches on what upstream is now; their commits."""
        new = [(patch.subject, {patch.path: f"{patch.name}\n{patch.text}\n"}) for patch in patches]
        return self._commits("mm-unstable", self.upstream[-1], new)

    def speeds(self) -> Speeds:
        return Speeds(self.path)

    def state(self, commit: str) -> dict[str, Any]:
        """What a commit says of itself to a fake lab; no two images are equal."""
        speed = round(100 * self.speeds().get(commit))
        return {"speed": speed, "boots": True, "broken": False, "note": commit}

    def _commits(
        self, branch: str, parent: str | None, new: Sequence[tuple[str, Mapping[str, str]]]
    ) -> list[str]:
        lines: list[str] = []
        for number, (subject, files) in enumerate(new, 1):
            self.clock += 1
            lines += [
                f"commit refs/heads/{branch}",
                f"mark :{number}",
                # the author's date stays, as in a rebase
                "author Ada <ada@example.org> 1700000000 +0000",
                f"committer Ada <ada@example.org> {self.clock} +0000",
                *_data(subject),
            ]
            if number == 1:
                lines += [f"from {parent}"] if parent else []
            for path, text in files.items():
                lines += [f"M 100644 inline {path}", *_data(text)]
        marks = self.path / "marks"
        subprocess.run(
            [
                "git",
                "-C",
                self.path,
                "fast-import",
                "--quiet",
                "--force",
                f"--export-marks={marks}",
            ],
            input="\n".join([*lines, ""]).encode(),
            check=True,
        )
        commits = dict(line.split() for line in marks.read_text().splitlines())
        return [commits[f":{number}"] for number in range(1, len(new) + 1)]


def _data(text: str) -> list[str]:
    return [f"data {len(text.encode())}", text]


class Speeds(dict[str, float]):
    """How fast the kernel of a commit is: the product of what its patches say."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def get(self, commit: str, default: float = 1.0) -> float:  # type: ignore[override]
        if commit not in self:
            matches = subprocess.run(
                ["git", "-C", self._path, "grep", "-h", "speed=", commit],
                capture_output=True,
                text=True,
            ).stdout
            speed = default
            for line in matches.splitlines():
                speed *= float(line.partition("speed=")[2])
            self[commit] = speed
        return self[commit]
