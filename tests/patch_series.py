"""Real repositories and real `git format-patch` output for tests of patch series."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A commit: the files that it leaves (None: it deletes one), its message and author."""

    files: dict[str, bytes | None]
    message: str
    author: str = "Ada Lovelace <ada@example.org>"
    date: str = "1700000000 +0200"


def git(repo: Path, *words: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", "-C", str(repo), *words],
        check=True,
        input=stdin,
        capture_output=True,
        env=ENVIRONMENT | {"GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org"},
    ).stdout


def make_repo(path: Path, changes: Sequence[Change]) -> list[str]:
    """A bare repository with these commits on branch main, oldest first."""
    path.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", path], check=True, env=ENVIRONMENT)
    stream: list[bytes] = []
    for change in changes:
        message = change.message.encode()
        stream += [
            b"commit refs/heads/main\n",
            f"author {change.author} {change.date}\n".encode(),
            f"committer {change.author} {change.date}\n".encode(),
            b"data %d\n%s\n" % (len(message), message),
        ]
        for name, content in change.files.items():
            if content is None:
                stream.append(f"D {name}\n".encode())
            else:
                stream.append(f"M 100644 inline {name}\n".encode())
                stream.append(b"data %d\n%s\n" % (len(content), content))
    git(path, "fast-import", "--quiet", stdin=b"".join(stream))
    return git(path, "rev-list", "--reverse", "main").decode().split()


def mailbox(repo: Path, count: int, *options: str) -> bytes:
    """`git format-patch --stdout` of the last `count` commits of main."""
    return git(repo, "format-patch", "--stdout", *options, f"-{count}", "main")


def a_mail(
    subject: str, body: str, *, sender: str = "Ada <ada@example.org>", headers: str = ""
) -> bytes:
    """A mail as a mailbox has it."""
    return (
        "From git@z Thu Jan  1 00:00:00 1970\n"
        f"From: {sender}\nDate: Tue, 14 Nov 2023 22:13:20 +0000\nSubject: {subject}\n{headers}\n"
        f"{body}\n"
    ).encode()


def a_diff(name: str = "mm/memory.c", new: str = "b") -> str:
    return f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+{new}\n"
