"""Queries on the user's git repository, and swingbot's own work trees in it.

HEAD, index and files of the user are never touched.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
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

    def tree(self, sha: str) -> str:
        return self._git("rev-parse", f"{sha}^{{tree}}").strip()

    def mentions(self, sha: str, word: str) -> bool:
        """Whether a file of the commit holds `word`."""
        return self._run("grep", "--quiet", "--fixed-strings", "-e", word, sha, "--").rc == 0

    def older(self, sha: str, most: int) -> list[str]:
        """The commit and up to `most` commits before it, by first parents, the newest first."""
        return self._git("rev-list", "--first-parent", f"-n{most + 1}", sha, "--").split()

    def later(self, sha: str, most: int) -> list[str]:
        """Up to `most` commits of any branch that descend from `sha`, the oldest first."""
        done = self._run(
            "rev-list", "--reverse", "--topo-order", "--ancestry-path", "--all", f"^{sha}"
        )
        return done.out.split()[:most] if done.rc == 0 else []

    def files(self, sha: str) -> list[str]:
        """Files that a commit changes; none for a merge and for a first commit."""
        return self._git("diff-tree", "-r", "--name-only", "--no-commit-id", sha).splitlines()

    def files_between(self, one: str, other: str) -> list[str]:
        return self._git("diff-tree", "-r", "--name-only", one, other).splitlines()

    def without(self, sha: str, patch: str) -> str | None:
        """A commit like `sha`, with the same parents, but without the change of commit `patch`.

        Its id is the same each time. None if the change cannot be taken out.
        """
        with tempfile.TemporaryDirectory() as place:
            index = {"GIT_INDEX_FILE": str(Path(place) / "index")}
            diff = Path(place) / "diff"
            made = self._run("diff-tree", "-p", "--no-ext-diff", "--binary", "--full-index", patch)
            diff.write_bytes(made.raw.partition(b"\n")[2])
            if (
                made.rc != 0
                or self._run("read-tree", sha, more=index).rc != 0
                or self._run("apply", "--cached", "-R", str(diff), more=index).rc != 0
            ):
                return None
            tree = self._run("write-tree", more=index).out.strip()
        parents = self._git("rev-list", "--parents", "-n1", sha, "--").split()[1:]
        when = self._git("show", "-s", "--format=%ct", sha, "--").strip()
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (
                ("NAME", "swingbot"),
                ("EMAIL", "swingbot@localhost"),
                ("DATE", f"@{when} +0000"),
            )
        }
        text = f"{sha[:12]} without {patch[:12]}, to tell an odd image from a change of code"
        of_parents = [word for parent in parents for word in ("-p", parent)]
        done = self._run("commit-tree", tree, *of_parents, "-m", text, more=who)
        return done.out.strip() if done.rc == 0 else None

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

    def _run(
        self,
        *words: str,
        timeout: float = _QUERY_SECONDS,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> process.Completed:
        return self._at(self.path, *words, timeout=timeout, more=more)

    def _at(
        self,
        where: Path,
        *words: str,
        timeout: float = _CHECKOUT_SECONDS,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> process.Completed:
        environment = clean_environment() | {
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
            **more,
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
