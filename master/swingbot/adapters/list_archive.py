"""Find the mail that a patch was posted as in a local archive of mailing lists, so that a report
can reply to it.

Four formats are supported: a public-inbox git repository (one mail per commit, in the file `m`), a
Maildir, an mbox file, a directory of mbox files. The content of an archive is untrusted: mails are
read up to a limit, searches have a time limit, and unreadable mails are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from swingbot.adapters import limits, process
from swingbot.core.mail.message import PostedMail, is_message_id
from swingbot.core.mail.posting import is_posting
from swingbot.core.patchset.mailbox import RawMail, raw_mail
from swingbot.core.patchset.mime import header_text
from swingbot_jobs.borrowed_repository import NotARepository, borrowed
from swingbot_jobs.process_limits import ProcessLimits


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
    fits = _by_id(message_id) if message_id else _by_subject(subject, author)
    posted: PostedMail | None = None
    try:
        for head in _heads(archive, message_id, subject, author, deadline):
            if fits(head):
                posted = _posted(head) or posted
                if message_id and posted:
                    break
            if time.monotonic() > deadline:
                break
    except OSError:
        return posted
    return posted


Fits = Callable[[RawMail], bool]


def _by_id(message_id: str) -> Fits:
    return lambda head: message_id in head.ids(b"message-id")[:1]


def _by_subject(subject: str, author: str) -> Fits:
    return lambda head: is_posting(_text(head, b"subject"), _text(head, b"from"), subject, author)


def _posted(head: RawMail) -> PostedMail | None:
    identity = next(iter(head.ids(b"message-id")), "")
    if head.problem or not is_message_id(identity):
        return None
    references = head.ids(b"references") or head.ids(b"in-reply-to")
    return PostedMail(
        message_id=identity,
        subject=_text(head, b"subject")[:1000],
        references=tuple(filter(is_message_id, references[-20:])),
    )


def _text(head: RawMail, name: bytes) -> str:
    return " ".join(header_text(head.header(name)).split())


def _parsed(raw: bytes) -> RawMail:
    return raw_mail(raw[: limits.ARCHIVED_MAIL_BYTES])


def _heads(
    archive: Path, message_id: str, subject: str, author: str, deadline: float
) -> Iterator[RawMail]:
    """Yield headers of candidate mails, oldest first."""
    if archive.is_file():
        yield from _mbox(archive)
    elif (archive / "cur").is_dir() or (archive / "new").is_dir():
        for file in sorted(
            (file for folder in ("cur", "new") for file in (archive / folder).glob("*")),
            key=lambda file: file.name,
        ):
            with file.open("rb") as mail:
                yield _parsed(mail.read(limits.ARCHIVED_MAIL_BYTES))
    elif repositories := _repositories(archive):
        for repository in repositories:
            yield from _public_inbox(repository, subject, author, deadline)
    else:
        for file in sorted(archive.rglob("*")):
            if file.is_file():
                yield from _mbox(file)


def _mbox(file: Path) -> Iterator[RawMail]:
    """Yield the mails of an mbox: each begins with a line `From `, and its headers end with an
    empty line.
    """
    head: list[bytes] | None = None
    size = 0
    with file.open("rb") as mbox:
        while line := mbox.readline(limits.ARCHIVED_MAIL_BYTES):
            if line.startswith(b"From "):
                head, size = [], 0
            elif head is not None and (line.strip() == b"" or size > limits.ARCHIVED_MAIL_BYTES):
                yield _parsed(b"".join(head))
                head = None
            elif head is not None:
                head.append(line)
                size += len(line)


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


def _public_inbox(
    repository: Path, subject: str, author: str, deadline: float
) -> Iterator[RawMail]:
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
                    yield _parsed(_git(git_dir, deadline, "cat-file", "blob", f"{commit}:m"))


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
        within=ProcessLimits(memory_bytes=limits.GIT_BYTES, file_bytes=limits.GIT_FILE_BYTES),
    )
    return ended.raw if ended.rc == 0 else b""
