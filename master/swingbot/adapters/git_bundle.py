"""Commits that a person sent as a bundle, read in a quarantine and checked there.

Git checks the objects themselves: `unpack-objects --strict` refuses malformed ones, paths into
`.git`, and objects without what they refer to. What it accepts and no kernel needs is refused here.
No ref of a bundle is created, and no delta stays: each object is a file of its own.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from swingbot.adapters import git_limits, process
from swingbot.adapters.git_series import GitRunner, check_touched, problem_of
from swingbot.core.limits import BUNDLE_COMMITS
from swingbot.core.patchset.bundle import Bundle
from swingbot.core.text.plain import cut
from swingbot.service.ports import GitError
from swingbot_jobs.process_limits import ProcessLimits

_INCOMPLETE: Final = (
    "the bundle is refused: it has not all the commits that it names, and those before them that no"
    " tree has"
)


class LimitedRunner(GitRunner, Protocol):
    """Runs git in the mirror within limits."""

    def __call__(
        self,
        *arguments: str,
        env: dict[str, str] | None = None,
        stdin: bytes = b"",
        within: ProcessLimits = git_limits.PATCHING,
    ) -> process.Completed: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbundled:
    """`commits` are those of the bundle with its `tips`; `created` those that the mirror lacked."""

    tips: tuple[str, ...] = ()
    commits: frozenset[str] = frozenset()
    created: frozenset[str] = frozenset()


def unbundle(run: LimitedRunner, bundle: Bundle, seen: Sequence[str], objects: Path) -> Unbundled:
    """Unpack the bundle to the directory `objects`. Raises GitError with what is wrong.

    `seen` are the arguments of `git rev-list` for the commits that its person may build on.
    """
    if missing := outside(run, bundle.prerequisites, seen):
        raise GitError(
            f"the bundle builds on commit {sorted(missing)[0][:12]}, which is neither in a tree of"
            " the service nor was sent by you; fetch the tree's branch and rebase on it"
        )
    done = run("unpack-objects", "-q", "--strict", stdin=bundle.pack, within=git_limits.UNBUNDLING)
    if exceeded := done.exceeded(git_limits.UNBUNDLING):
        raise GitError(f"the bundle is refused: to unpack it, git {exceeded.removeprefix('it ')}")
    if done.rc != 0:
        raise GitError(f"the bundle is refused: {_why(done)}")
    commits = _commits(run, bundle, seen)
    created = {file.parent.name + file.name for file in objects.glob("[0-9a-f][0-9a-f]/*")}
    _check_needed(run, bundle, seen, created)
    if (found := set(commits) - created) and not found <= _packed(run, bundle):
        raise GitError(_INCOMPLETE)  # the mirror has them from somebody else
    _check_files(run, commits)
    return Unbundled(
        tips=tuple(tip for tip in bundle.tips if tip in commits),
        commits=frozenset(commits),
        created=frozenset(created.intersection(commits)),
    )


def outside(run: LimitedRunner, commits: Collection[str], seen: Sequence[str]) -> set[str]:
    """Return those of `commits` that are not here, or not an ancestor of what `seen` names.

    Raises GitError.
    """
    asked = sorted(set(commits))
    kinds = zip(asked, _kinds(run, asked), strict=True)
    here = [commit for commit, kind in kinds if kind == "commit"]
    if not here:
        return set(asked)
    beyond = _git(run, "rev-list", "--stdin", "--not", *seen, stdin=_lines(here))
    return set(asked) - set(here) | set(beyond.split()).intersection(here)


def _commits(run: LimitedRunner, bundle: Bundle, seen: Sequence[str]) -> list[str]:
    """Return the commits of the bundle, children first. Raises GitError."""
    if set(_kinds(run, bundle.tips)) != {"commit"}:
        raise GitError(_INCOMPLETE)
    most = f"--max-count={BUNDLE_COMMITS + 1}"
    rows = _git(run, "rev-list", "--parents", most, *bundle.tips, "--not", *seen).splitlines()
    if len(rows) > BUNDLE_COMMITS:
        raise GitError(
            f"the bundle has more than {BUNDLE_COMMITS} commits; ask an operator to fetch them as a"
            " branch"
        )
    if roots := [row for row in rows if " " not in row]:
        raise GitError(f"the bundle is refused: commit {roots[0][:12]} has no parent")
    return [row.partition(" ")[0] for row in rows]


def _kinds(run: LimitedRunner, objects: Sequence[str]) -> list[str]:
    """Return what git says of each: its type, or that it is missing. Raises GitError."""
    words = ("cat-file", "--batch-check=%(objecttype)")
    return _git(run, *words, stdin=_lines(objects)).split("\n")[:-1]


def _lines(words: Iterable[str]) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


def _packed(run: LimitedRunner, bundle: Bundle) -> set[str]:
    """Return the objects of the bundle's pack, whether the mirror has them or not. Raises GitError.

    The files that its deltas build on are written behind them.
    """
    with tempfile.TemporaryDirectory(prefix="swingbot-bundle-") as folder:
        words = ("index-pack", "--stdin", "--fix-thin", "--threads=1", f"{folder}/sent.pack")
        _git(run, *words, stdin=bundle.pack)
        rows = _git(run, "show-index", stdin=Path(folder, "sent.idx").read_bytes()).splitlines()
    entries = (row.split() for row in rows)  # offset, object, checksum
    return {entry[1] for entry in entries if int(entry[0]) < len(bundle.pack)}


def _check_needed(
    run: LimitedRunner, bundle: Bundle, seen: Sequence[str], created: Collection[str]
) -> None:
    """Raise GitError unless all that was created belongs to the tips, and all of them is here."""
    words = ("rev-list", "--objects", "--no-object-names", *bundle.tips, "--not", *seen)
    if superfluous := set(created) - set(_git(run, *words).split()):
        raise GitError(
            f"the bundle is refused: {len(superfluous)} of its objects belong to none of its"
            " commits"
        )


def _check_files(run: LimitedRunner, commits: Iterable[str]) -> None:
    """Raise GitError for a commit whose files are refused, or cost too much.

    A tree may have the same tree many times, so a small bundle may have any number of files.
    """

    def limited(
        *arguments: str, env: dict[str, str] | None = None, stdin: bytes = b""
    ) -> process.Completed:
        done = run(*arguments, env=env, stdin=stdin, within=git_limits.UNBUNDLING)
        if exceeded := done.exceeded(git_limits.UNBUNDLING):
            raise GitError(f"to list its files, git {exceeded.removeprefix('it ')}")
        return done

    for commit in commits:
        parent = f"{commit}^"
        try:
            problem = problem_of(limited, parent, commit) or check_touched(limited, parent, commit)
        except GitError as error:
            problem = str(error)
        if problem:
            raise GitError(f"commit {commit[:12]} is refused: {problem}")


def _git(run: LimitedRunner, *words: str, stdin: bytes = b"") -> str:
    done = run(*words, stdin=stdin)
    if exceeded := done.exceeded(git_limits.PATCHING):
        raise GitError(f"the commits are refused: to read them, git {exceeded[3:]}")
    if done.rc != 0:
        raise GitError(f"the commits are refused: {_why(done)}")
    return done.out


def _why(done: process.Completed) -> str:
    """Return the first complaint of git about an object, else its last one, on one line."""
    lines = [
        re.sub(r"^(fatal|error): ", "", line) for line in done.err.splitlines() if line.strip()
    ]
    why = next((line for line in lines if "object" in line), lines[-1] if lines else "")
    return cut(why, 200) or f"git exited with status {done.rc}"
