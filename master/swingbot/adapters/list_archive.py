"""Find the mail that a patch was posted as in a local archive of mailing lists, so that a report
can reply to it.

Four formats are supported: a public-inbox git repository (one mail per commit, in the file `m`), a
Maildir, an mbox file, a directory of mbox files. The content of an archive is untrusted: mails are
read up to a limit by the child of `mail_reader`, searches have a time limit, and unreadable mails
are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import IO

from swingbot.adapters import git_limits, limits, process
from swingbot.adapters.mail_reader import TOGETHER, mail_reader, spooled
from swingbot.core.mail.message import PostedMail
from swingbot.service.ports.results import Unreadable
from swingbot_jobs import codec
from swingbot_jobs.borrowed_repository import NotARepository, borrowed


def find_posted(
    archive: Path,
    message_id: str,
    subject: str,
    author: str,
    *,
    seconds: float = limits.ARCHIVE_SECONDS,
) -> PostedMail | None:
    """Return the mail with this Message-ID or, if that is empty, the latest one by `author` with
    the subject `[PATCH] subject`.

    The result has the mail's own subject and references. None if there is none, the archive is
    unreadable, or the time limit is exceeded.
    """
    deadline = time.monotonic() + seconds
    asked = {"read": "posting", "message_id": message_id, "subject": subject, "author": author}
    posted: PostedMail | None = None
    with mail_reader() as reader, suppress(OSError, Unreadable):
        for mbox in _mailboxes(archive, subject, author, deadline):
            left = deadline - time.monotonic()
            if left <= 0 or (message_id and posted):
                break
            answer = reader.ask(asked | {"seconds": left}, mbox)["posted"]
            posted = codec.typed(PostedMail, answer) if answer else posted
    return posted


def _mailboxes(archive: Path, subject: str, author: str, deadline: float) -> Iterator[IO[bytes]]:
    """Yield files of candidate mails, oldest first, each mail after a line `From `."""
    if archive.is_file():
        with archive.open("rb") as mbox:
            yield mbox
    elif (archive / "cur").is_dir() or (archive / "new").is_dir():
        files = (file for folder in ("cur", "new") for file in (archive / folder).glob("*"))
        yield from _joined(map(_start, sorted(files, key=lambda file: file.name)))
    elif repositories := _repositories(archive):
        for repository in repositories:
            yield from _joined(_public_inbox(repository, subject, author, deadline))
    else:
        for file in sorted(archive.rglob("*")):
            if file.is_file():
                with file.open("rb") as mbox:
                    yield mbox


def _start(file: Path) -> bytes:
    with file.open("rb") as mail:
        return mail.read(limits.ARCHIVED_MAIL_BYTES)


def _joined(mails: Iterable[bytes]) -> Iterator[IO[bytes]]:
    """Yield files of the headers of a few mails."""
    left = iter(mails)
    while some := list(islice(left, TOGETHER)):
        with spooled(b"From \n%b\n\n" % _headers(mail) for mail in some) as mbox:
            yield mbox


def _headers(mail: bytes) -> bytes:
    start = mail[: limits.ARCHIVED_MAIL_BYTES].replace(b"\r\n", b"\n")
    return start.partition(b"\n\n")[0]


def _repositories(archive: Path) -> list[Path]:
    """Return the git repositories of a public-inbox: the directory itself, or its epochs in `git/`,
    oldest first.
    """
    if (archive / "objects").is_dir():
        return [archive]
    if (archive / ".git/objects").is_dir():
        return [archive / ".git"]
    return sorted(
        (place for place in (archive / "git").glob("*.git") if (place / "objects").is_dir()),
        key=lambda place: (len(place.name), place.name),
    )


def _public_inbox(repository: Path, subject: str, author: str, deadline: float) -> Iterator[bytes]:
    """Yield candidate mails, oldest first. A commit of public-inbox has the mail's subject and
    sender, so git can select them.

    Search by the first words of the subject, since a maintainer may shorten it; otherwise by the
    author, since the subject may have changed completely.
    """
    address = author.rpartition("<")[2].rstrip("> ") or author
    words = subject[:60].strip()
    chosen = [("--fixed-strings", f"--grep={words}")] if words else []
    chosen += [("--fixed-strings", f"--author={address}")] if address else []
    seen: set[str] = set()
    with suppress(NotARepository), borrowed(repository) as git_dir:
        for filters in chosen:
            for commit in _commits(git_dir, deadline, filters):
                if commit not in seen and time.monotonic() < deadline:
                    seen.add(commit)
                    yield _git(git_dir, deadline, "cat-file", "blob", f"{commit}:m")


def _commits(git_dir: Path, deadline: float, filters: Sequence[str]) -> list[str]:
    words = (
        "log",
        "--all",
        "--reverse",
        f"--max-count={limits.ARCHIVE_COMMITS}",
        "--format=%H",
        *filters,
    )
    return _git(git_dir, deadline, *words).decode("ascii", "replace").split()


def _git(git_dir: Path, deadline: float, *arguments: str) -> bytes:
    ended = process.run(
        ["git", "--git-dir", str(git_dir), *arguments],
        timeout=max(0.1, deadline - time.monotonic()),
        cwd=Path("/"),
        within=git_limits.GIT,
    )
    return ended.raw if ended.rc == 0 else b""
