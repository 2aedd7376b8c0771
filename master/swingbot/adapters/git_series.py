"""Apply a patch series in the mirror, with a separate index and without a checkout.

`git apply` itself refuses paths outside the tree, into `.git`, and beyond symbolic links. Content
that it accepts but no kernel needs is refused here: submodules, links that lead out of the tree,
and files that are too large. What it costs is counted before it begins.
"""

from __future__ import annotations

import os
import posixpath
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from swingbot.adapters import limits, process
from swingbot.core.patchset.model import SeriesPatch, commit_message
from swingbot.core.patchset.touched import touched_files
from swingbot.core.text.plain import cut
from swingbot.service.ports import GitError
from swingbot_jobs.process_limits import ProcessLimits

_APPLY: Final = ("apply", "--cached", "--whitespace=nowarn")
_MODES: Final = ("100644", "100755", "120000")
_SIZE: Final = "--batch-check=%(objectsize)"
_LINK: Final = "120000"
# The name of a file in a tree for `cat-file`; git applies nothing to one that leads elsewhere.
_ASKABLE: Final = re.compile(rb"(?!\.{1,2}/)[^\n\0]*")
_EPOCH: Final = "2000-01-01T00:00:00Z"
_COMMITTER: Final = {
    "GIT_COMMITTER_NAME": "swingbot",
    "GIT_COMMITTER_EMAIL": "swingbot@localhost",
    "GIT_COMMITTER_DATE": _EPOCH,
}


class GitRunner(Protocol):
    """Runs git in the mirror."""

    def __call__(
        self, *arguments: str, env: dict[str, str] | None = None, stdin: bytes = b""
    ) -> process.Completed: ...


@dataclass(frozen=True, slots=True)
class _PatchedFile:
    """A file as it is after a patch."""

    path: str
    mode: str
    blob: str
    before: str  # the blob that it had; zeros: none


def apply_series(
    run: GitRunner, within: ProcessLimits, base: str, patches: Sequence[SeriesPatch]
) -> list[str]:
    """Commit each patch on top of the previous one; return the commits, oldest first, which nothing
    refers to yet. `run` runs git `within` limits.

    They depend only on `base` and `patches`. Raises GitError, which names the patch and the
    commit.
    """
    commits: list[str] = []
    touched = 0
    with tempfile.TemporaryDirectory(prefix="swingbot-apply-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        _git(run, "read-tree", base, env=env)
        for patch in patches:
            parent = commits[-1] if commits else base
            name = f"patch {patch.number}/{len(patches)} ({cut(patch.subject, 100)})"
            touched += _touched(run, name, patch, parent)
            if touched > limits.SERIES_TOUCHED_BYTES:
                most = limits.SERIES_TOUCHED_BYTES >> 20
                raise GitError(
                    f"{name} is refused: with it, the files that the series changes, copies or"
                    f" renames have {touched >> 20} MiB together; the maximum is {most} MiB"
                )
            tree = _tree_of(run, within, patch, name, parent, Path(scratch))
            words = ("commit-tree", tree, "-p", parent)
            message = commit_message(patch).encode()
            commits.append(_git(run, *words, env=_identity(patch), stdin=message).strip())
    return commits


def check_touched(run: GitRunner, parent: str, commit: str) -> str:
    """Return why it would cost too much to compare two commits; empty if it does not."""
    blobs = [blob for entry in _entries(run, parent, commit) for blob in (entry.blob, entry.before)]
    touched = sum(_sizes(run, [blob for blob in blobs if blob.strip("0")]))
    return _too_much(touched) if touched > limits.TOUCHED_BYTES else ""


def _touched(run: GitRunner, name: str, patch: SeriesPatch, parent: str) -> int:
    """Return the bytes of all files that the patch changes, copies or renames.

    Raises GitError if they exceed the limit.
    """
    files = patch.touched or list(touched_files(patch.diff))
    names = sorted({word for file in files for word in file.before})
    asked = [word for word in names if _ASKABLE.fullmatch(word)]
    lines = "".join(f"{parent}:{os.fsdecode(word)}\n" for word in asked)
    answers = _git(run, "cat-file", _SIZE, stdin=os.fsencode(lines)).split("\n")[:-1]
    sizes = {
        word: int(answer) if answer.isdigit() else 0
        for word, answer in zip(asked, answers, strict=True)
    }
    total = 0
    for file in files:
        cost = file.length + max(
            (sizes.get(word, limits.PATCHED_FILE_BYTES) for word in file.before), default=0
        )
        sizes |= dict.fromkeys(file.after, cost)  # which a later part may copy
        total += cost
    if total > limits.TOUCHED_BYTES:
        raise GitError(f"{name} is refused: {_too_much(total)}")
    return total


def _too_much(touched: int) -> str:
    return (
        f"the files that it changes, copies or renames have {touched >> 20} MiB together; the"
        f" maximum is {limits.TOUCHED_BYTES >> 20} MiB"
    )


def _tree_of(
    run: GitRunner,
    within: ProcessLimits,
    patch: SeriesPatch,
    name: str,
    parent: str,
    scratch: Path,
) -> str:
    """Apply the patch to the index in `scratch`; return the resulting tree."""
    env = {"GIT_INDEX_FILE": str(scratch / "index")}
    diff = scratch / "diff"
    diff.write_bytes(patch.diff)
    done = run(*_APPLY, "--no-ignore-whitespace", str(diff), env=env)
    if exceeded := done.exceeded(within):
        raise GitError(f"{name} is refused: to apply it, git {exceeded.removeprefix('it ')}")
    if done.rc != 0:
        said = _last_line(done).replace(f"{diff}:", "diff:") + _line_ends(run, patch, diff, env)
        raise GitError(f"{name} does not apply on {parent[:12]}: {said}")
    written = run("write-tree", env=env)
    if written.rc != 0:
        raise GitError(f"{name} does not apply on {parent[:12]}: {_last_line(written)}")
    tree = written.out.strip()
    problem = problem_of(run, parent, tree)
    if problem:
        raise GitError(f"{name} is refused: {problem}")
    return tree


def _line_ends(run: GitRunner, patch: SeriesPatch, diff: Path, env: dict[str, str]) -> str:
    """Return a clause that explains a failure by the line ends; empty if they are not the cause."""
    if b"\r\n" in patch.diff:
        diff.write_bytes(patch.diff.replace(b"\r\n", b"\n"))
        if run(*_APPLY, "--check", "--no-ignore-whitespace", str(diff), env=env).rc == 0:
            return (
                "; lines of the patch end in CRLF, but those of the file in LF: send it unconverted"
            )
    elif run(*_APPLY, "--check", "--ignore-whitespace", str(diff), env=env).rc == 0:
        return (
            "; it applies if white space is ignored: the file has CRLF line ends, or the mailer"
            " changed white space"
        )
    return ""


def _identity(patch: SeriesPatch) -> dict[str, str]:
    name, _, address = patch.author.rpartition(" <")
    return {
        "GIT_AUTHOR_NAME": name or "unknown",
        "GIT_AUTHOR_EMAIL": address.removesuffix(">") or "unknown@localhost",
        "GIT_AUTHOR_DATE": _git_date(patch.date),
        **_COMMITTER,
    }


def _git_date(date: datetime | None) -> str:
    return _EPOCH if date is None else f"@{int(date.timestamp())} {date:%z}"[:30]


def problem_of(run: GitRunner, parent: str, tree: str) -> str:
    """Return why files that differ between the commits or trees `parent` and `tree` are refused;
    empty if they are accepted.
    """
    present = [entry for entry in _entries(run, parent, tree) if entry.mode != "000000"]
    for entry in present:
        if len(os.fsencode(entry.path)) > limits.CHANGED_PATH_BYTES:
            return f"{cut(entry.path, 120)} has more than {limits.CHANGED_PATH_BYTES} bytes"
        if entry.path.count("/") >= limits.CHANGED_PATH_PARTS:
            return f"{cut(entry.path, 120)} is more than {limits.CHANGED_PATH_PARTS} levels deep"
        if entry.mode not in _MODES:
            return f"{cut(entry.path, 120)} would be a submodule"
    sizes = _sizes(run, [entry.blob for entry in present])
    for entry, size in zip(present, sizes, strict=True):
        if size > limits.PATCHED_FILE_BYTES:
            return f"{cut(entry.path, 120)} would exceed {limits.PATCHED_FILE_BYTES >> 20} MiB"
        if entry.mode == _LINK and _leads_out(run, entry, size):
            return f"{cut(entry.path, 120)} would be a symbolic link that leads out of the tree"
    return ""


def _entries(run: GitRunner, parent: str, tree: str) -> list[_PatchedFile]:
    """Return the files that differ between two commits or trees."""
    words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", parent, tree, "--")
    raw = _git(run, *words).split("\0")
    return [_entry(head, path) for head, path in zip(raw[::2], raw[1::2], strict=False)]


def _entry(head: str, path: str) -> _PatchedFile:
    """Parse `:100644 100644 <old> <new> M` and the path."""
    _, mode, before, blob, _ = head.split(" ")
    return _PatchedFile(path, mode, blob, before)


def _sizes(run: GitRunner, blobs: Sequence[str]) -> list[int]:
    """Return the size of each blob in bytes; 0 for the commit of a submodule, which is not here."""
    if not blobs:
        return []
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    answers = _git(run, "cat-file", _SIZE, stdin=asked).split("\n")[:-1]
    return [int(answer) if answer.isdigit() else 0 for answer in answers]


def _leads_out(run: GitRunner, entry: _PatchedFile, size: int) -> bool:
    """Return whether a link is absolute, climbs out of the tree, or is longer than a path can
    be.
    """
    if size > 4095:
        return True
    target = _git(run, "cat-file", "blob", entry.blob)
    place = posixpath.normpath(posixpath.join(posixpath.dirname(entry.path), target))
    return target.startswith("/") or place == ".." or place.startswith("../")


def _git(run: GitRunner, *words: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> str:
    done = run(*words, env=env, stdin=stdin)
    if done.rc != 0:
        raise GitError(f"git {words[0]}: {_last_line(done) or f'exit status {done.rc}'}")
    return done.out


def _last_line(done: process.Completed) -> str:
    lines = [line for line in done.err.splitlines() if line.strip()]
    return lines[-1].removeprefix("fatal: ").removeprefix("error: ") if lines else ""
