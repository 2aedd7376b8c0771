"""A checkout with every kind of uncommitted change, and all that a command must leave as it is."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tests.patch_series import git

HOOKS = ("pre-commit", "commit-msg", "post-commit", "post-index-change", "reference-transaction")


def introduce(path: Path) -> None:
    """Let git know who commits."""
    git(path, "config", "user.name", "Ada")
    git(path, "config", "user.email", "ada@example.org")


def a_dirty_checkout(path: Path) -> Path:
    """Change tracked files of the checkout `path` in each way; one that is untracked too."""
    introduce(path)
    for name in ("staged", "both", "gone", "unstaged", "program", "moved"):
        (path / name).write_text(f"{name}\n")
    git(path, "add", ".")
    git(path, "commit", "-qm", "all kinds")
    (path / "unstaged").write_text("stashed\n")
    git(path, "stash", "-q")
    (path / "staged").write_text("s\n")
    (path / "both").write_text("b\n")
    (path / "added").write_text("a\n")
    git(path, "add", "staged", "both", "added")
    git(path, "mv", "moved", "moved there")
    (path / "both").write_text("bb\n")
    (path / "later").write_text("l\n")
    git(path, "add", "--intent-to-add", "later")
    (path / "gone").unlink()
    (path / "unstaged").write_text("u\n")
    (path / "program").chmod(0o755)
    (path / "untracked").write_text("mine\n")
    for hook in HOOKS:
        file = path / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\necho {hook} >> '{path}/hooked'\n")
        file.chmod(0o755)
    return path


def left(path: Path) -> dict[str, str]:
    """Digest, mode and time of all files of a checkout, objects apart: index, refs, logs, stash and
    the work tree.
    """
    return {
        str(file.relative_to(path)): _state(file)
        for file in sorted(path.rglob("*"))
        if file.is_file() and not file.is_relative_to(path / ".git" / "objects")
    }


def _state(file: Path) -> str:
    # git renews the time of a shared index whenever it reads one
    when = 0 if file.name.startswith("sharedindex.") else file.stat().st_mtime_ns
    return f"{hashlib.sha256(file.read_bytes()).hexdigest()} {file.stat().st_mode:o} {when}"
