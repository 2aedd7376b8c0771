"""Queries on the user's git repository, and swingbot's own work trees in it.

HEAD, index and files of the user are never touched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from swingbot.adapters import process
from swingbot.app.bisect_run.commit_range import RangeCommit
from swingbot.app.bisect_run.failures import RunError, UsageError

_CONFIG: Final = (
    "-c",
    "log.showSignature=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "advice.detachedHead=false",
    "-c",
    "i18n.logOutputEncoding=UTF-8",
)
_QUERY_SECONDS: Final = 600.0
_CHECKOUT_SECONDS: Final = 3600.0


def clean_environment() -> dict[str, str]:
    """Our environment without the variables by which a git hook or alias selects a repository."""
    return {k: v for k, v in os.environ.items() if k not in _TIES}


_TIES: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
)


class Repository:
    """The repository that contains `path`. Raises UsageError if there is none."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise UsageError(f"{path} is not a directory; give the repository with --repo DIR")
        self.path = path
        done = self._run("rev-parse", "--git-common-dir")
        if done.rc != 0:
            raise UsageError(
                f"{path} is not a git repository ({_last_line(done.err)}); run in one, or give"
                " --repo DIR"
            )
        self.git_dir = (path / done.out.strip()).resolve()

    def resolve(self, ref: str) -> str:
        """Resolve a branch, tag, commit or unique prefix to a full commit id. Raises UsageError."""
        done = self._run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"
        )
        if done.rc == 0:
            return done.out.strip()
        why = (
            "is ambiguous; give more digits"
            if "ambiguous" in self._run("rev-parse", ref, "--").err
            else "is not a commit in this repository"
        )
        raise UsageError(f"{ref!r} {why} ({self.path}); give a branch, a tag or a commit id")

    def is_ancestor(self, old: str, new: str) -> bool:
        return self._run("merge-base", "--is-ancestor", old, new).rc == 0

    def merge_base(self, one: str, other: str) -> str | None:
        done = self._run("merge-base", one, other)
        return done.out.split()[0] if done.rc == 0 and done.out.strip() else None

    def log(self, good: str, bad: str) -> list[RangeCommit]:
        """Commits reachable from `bad` and not from `good`, children before parents."""
        fields = self._git(
            "log", "-z", "--topo-order", "--format=%H%x00%P%x00%s", f"{good}..{bad}", "--"
        ).split("\0")
        return [
            RangeCommit(sha, tuple(parents.split()), subject)
            for sha, parents, subject in zip(fields[::3], fields[1::3], fields[2::3], strict=False)
        ]

    def touching(self, good: str, bad: str, paths: Sequence[str]) -> set[str]:
        """Non-merge commits of the range that change one of `paths` (git pathspecs)."""
        specs = [f":(top,glob){p}" if not p.startswith(":") else p for p in paths]
        return set(
            self._git(
                "log",
                "--no-merges",
                "--full-history",
                "--format=%H",
                f"{good}..{bad}",
                "--",
                *specs,
            ).split()
        )

    def show(self, sha: str) -> str:
        """Author, date and message, as `git bisect` prints them below its answer."""
        return self._git("show", "-s", "--no-color", "--format=medium", sha, "--").rstrip("\n")

    def check_out(self, tree: Path, sha: str) -> None:
        """Check out `sha` in our work tree `tree`; untracked files stay, as with `git bisect`."""
        if (tree / ".git").is_file() and self._at(
            tree, "checkout", "--quiet", "--force", "--detach", sha
        ).rc == 0:
            return
        self.remove(tree)
        tree.parent.mkdir(parents=True, exist_ok=True)
        done = self._run(
            "worktree",
            "add",
            "--quiet",
            "--force",
            "--detach",
            str(tree),
            sha,
            timeout=_CHECKOUT_SECONDS,
        )
        if done.rc != 0:
            raise RunError(f"commit {sha[:12]} cannot be checked out: {_last_line(done.err)}")

    def remove(self, tree: Path) -> None:
        """Remove our work tree `tree` if it exists."""
        self._run("worktree", "remove", "--force", "--force", str(tree))
        shutil.rmtree(tree, ignore_errors=True)
        self._run("worktree", "prune")

    def _git(self, *words: str) -> str:
        done = self._run(*words)
        if done.rc != 0:
            raise RunError(f"git {words[0]}: {_last_line(done.err) or f'exit status {done.rc}'}")
        return done.out

    def _run(self, *words: str, timeout: float = _QUERY_SECONDS) -> process.Completed:
        return self._at(self.path, *words, timeout=timeout)

    def _at(
        self, where: Path, *words: str, timeout: float = _CHECKOUT_SECONDS
    ) -> process.Completed:
        environment = clean_environment() | {
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
        }
        try:
            return process.run(
                ["git", "-C", str(where), *_CONFIG, *words], timeout=timeout, env=environment
            )
        except FileNotFoundError:
            raise RunError("git is not installed, or not in PATH") from None


def _last_line(text: str) -> str:
    lines = [
        line.removeprefix("fatal: ").removeprefix("error: ")
        for line in text.splitlines()
        if line.strip() and not line.startswith("hint:")
    ]
    return lines[-1] if lines else ""
