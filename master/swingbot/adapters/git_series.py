"""Apply a patch series in the mirror, with a separate index and without a checkout.

`git apply` itself refuses paths outside the tree, into `.git`, and beyond symbolic links. Content
that it accepts but no kernel needs is refused here: submodules, links that lead out of the tree,
and files that are too large.
"""

from __future__ import annotations

import posixpath
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from swingbot.adapters import limits, process
from swingbot.core.patchset.model import SeriesPatch, commit_message
from swingbot.core.text.plain import cut
from swingbot.service.ports import GitError

_APPLY: Final = ("apply", "--cached", "--whitespace=nowarn")
_MODES: Final = ("100644", "100755", "120000")
_SIZE: Final = "--batch-check=%(objectsize)"
_LINK: Final = "120000"
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
    new: bool


def apply_series(run: GitRunner, base: str, patches: Sequence[SeriesPatch]) -> list[str]:
    """Commit each patch on top of the previous one; return the commits, oldest first, which nothing
    refers to yet.

    They depend only on `base` and `patches`. Raises GitError, which names the patch and the
    commit.
    """
    commits: list[str] = []
    with tempfile.TemporaryDirectory(prefix="swingbot-apply-") as scratch:
        env = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        _git(run, "read-tree", base, env=env)
        for patch in patches:
            parent = commits[-1] if commits else base
            tree = _tree_of(run, patch, parent, len(patches), Path(scratch))
            words = ("commit-tree", tree, "-p", parent)
            message = commit_message(patch).encode()
            commits.append(_git(run, *words, env=_identity(patch), stdin=message).strip())
    return commits


def _tree_of(run: GitRunner, patch: SeriesPatch, parent: str, count: int, scratch: Path) -> str:
    """Apply the patch to the index in `scratch`; return the resulting tree."""
    env = {"GIT_INDEX_FILE": str(scratch / "index")}
    diff = scratch / "diff"
    diff.write_bytes(patch.diff)
    name = f"patch {patch.number}/{count} ({cut(patch.subject, 100)})"
    done = run(*_APPLY, "--no-ignore-whitespace", str(diff), env=env)
    if done.rc != 0:
        said = _last_line(done).replace(f"{diff}:", "diff:") + _line_ends(run, patch, diff, env)
        raise GitError(f"{name} does not apply on {parent[:12]}: {said}")
    written = run("write-tree", env=env)
    if written.rc != 0:
        raise GitError(f"{name} does not apply on {parent[:12]}: {_last_line(written)}")
    tree = written.out.strip()
    problem = _problem(run, parent, tree)
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


def _problem(run: GitRunner, parent: str, tree: str) -> str:
    """Return why files that differ between `parent` and `tree` are refused; empty if they are
    accepted.
    """
    raw = _git(run, "diff-tree", "-r", "-z", "--raw", "--no-renames", parent, tree, "--").split(
        "\0"
    )
    entries = [_entry(head, path) for head, path in zip(raw[::2], raw[1::2], strict=False)]
    present = [entry for entry in entries if entry.mode != "000000"]
    for entry in present:
        if entry.mode not in _MODES:
            return f"{cut(entry.path, 120)} would be a submodule"
    sizes = _sizes(run, present)
    if (
        sum(size for entry, size in zip(present, sizes, strict=True) if entry.new)
        > limits.ADDED_BYTES
    ):
        return f"the files that it adds exceed {limits.ADDED_BYTES >> 20} MiB"
    for entry, size in zip(present, sizes, strict=True):
        if size > limits.PATCHED_FILE_BYTES:
            return f"{cut(entry.path, 120)} would exceed {limits.PATCHED_FILE_BYTES >> 20} MiB"
        if entry.mode == _LINK and _leads_out(run, entry, size):
            return f"{cut(entry.path, 120)} would be a symbolic link that leads out of the tree"
    return ""


def _entry(head: str, path: str) -> _PatchedFile:
    """Parse `:100644 100644 <old> <new> M` and the path."""
    _, mode, _, blob, status = head.split(" ")
    return _PatchedFile(path, mode, blob, new=status == "A")


def _sizes(run: GitRunner, entries: Sequence[_PatchedFile]) -> list[int]:
    """Return the size of each file in bytes."""
    if not entries:
        return []
    asked = "".join(f"{entry.blob}\n" for entry in entries).encode()
    return [int(size) for size in _git(run, "cat-file", _SIZE, stdin=asked).split()]


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
