"""Maildirs: the destination of the embedded mail server, and the store for copies of sent mail."""

from __future__ import annotations

import mailbox
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final

from swingbot.adapters import limits
from swingbot.adapters.mail_reader import Head, read_heads, read_mail
from swingbot.core.limits import MAIL_BYTES
from swingbot.service.ports.results import Unreadable

_FOLDERS: Final = ("new", "cur")
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._,=+-]{0,250}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredMail:
    """A delivered mail; `subject` and `message_id` come from its headers, empty if missing."""

    path: Path
    message_id: str
    subject: str


def deliver(maildir: Path, message: bytes) -> Path:
    """Put `message` into `maildir` (created if needed), atomically and on disk when this returns.

    Raises OSError.
    """
    # create each one every time: `create=True` would trust a partially created directory
    for name in ("tmp", "new", "cur"):
        (maildir / name).mkdir(parents=True, exist_ok=True)
    testbox = mailbox.Maildir(maildir, create=False)
    key = testbox.add(message.replace(b"\r\n", b"\n"))
    folder = os.open(maildir / "new", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)  # the file is on disk already; this is its name
    finally:
        os.close(folder)
    return maildir / "new" / key


def letters(maildir: Path) -> list[DeliveredMail]:
    """Return all delivered mails, oldest first.

    A missing Maildir is empty; a file that is not a mail has no subject. Raises Unreadable.
    """
    paths: list[Path] = []

    def starts() -> Iterator[bytes]:
        for path in files(maildir):
            if (opened := _opened(path)) is not None:
                paths.append(path)
                yield opened[0]

    heads = read_heads(starts())
    return [
        DeliveredMail(path=path, message_id=head["message-id"], subject=head["subject"])
        for path, head in zip(paths, heads, strict=True)
    ]


def find(maildir: Path, message_id: str) -> list[DeliveredMail]:
    """Return the mails with that Message-ID; more than one means that a mail was sent twice."""
    return [letter for letter in letters(maildir) if letter.message_id == message_id]


def files(maildir: Path) -> Iterator[Path]:
    """Yield the files of all mails, oldest first."""
    paths = [
        path
        for folder in _FOLDERS
        if (maildir / folder).is_dir()
        for path in (maildir / folder).iterdir()
    ]
    return iter(sorted(paths, key=lambda path: path.name))


def _opened(path: Path, most: int = limits.ARCHIVED_MAIL_BYTES) -> tuple[bytes, int] | None:
    """Return the first `most` bytes of a mail, and its size."""
    try:
        with path.open("rb") as file:
            return file.read(most), os.fstat(file.fileno()).st_size
    except OSError:
        return None  # moved from new/ to cur/ or deleted by a mail reader in the meantime


def _delivered_at(path: Path) -> int | None:
    """Return when a mail was delivered, in nanoseconds; None as in `_opened`."""
    try:
        return path.stat().st_mtime_ns if path.is_file() else None
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class DeliveredMails:
    """The mails of a Maildir for pages. Their `key` is the file's name without Maildir's flags."""

    maildir: Path

    def newest(self, most: int) -> tuple[list[dict[str, Any]], int]:
        """Return the headers, key and size of the newest mails, and the number of all."""
        times = {path: _delivered_at(path) for path in files(self.maildir)}
        newest = sorted(
            ((at, path.name, path) for path, at in times.items() if at is not None), reverse=True
        )
        found = ((path, _opened(path)) for _, _, path in newest[:most])
        shown = {path: opened for path, opened in found if opened is not None}
        try:
            heads: Sequence[Head] = read_heads(start for start, _ in shown.values())
        except Unreadable:
            heads = [{}] * len(shown)
        facts = [
            _facts(path, size, head)
            for (path, (_, size)), head in zip(shown.items(), heads, strict=True)
        ]
        return facts, len(newest)

    def mail(self, key: str) -> dict[str, Any] | None:
        """Return a mail with its `text`; None if there is none with this key."""
        path = next((path for path in files(self.maildir) if _key(path) == key), None)
        opened = _opened(path, MAIL_BYTES) if path and _KEY.fullmatch(key) else None
        if path is None or opened is None:
            return None
        try:
            head, text = read_mail(opened[0])
        except Unreadable as error:
            head, text = {}, f"({error})"
        return _facts(path, opened[1], head) | {"text": text}


def _key(path: Path) -> str:
    return path.name.split(":")[0]


def _facts(path: Path, size: int, head: Head) -> dict[str, Any]:
    facts: dict[str, Any] = {name.replace("-", "_"): text or None for name, text in head.items()}
    try:
        date = parsedate_to_datetime(head.get("date", "")[:100]).astimezone()
        facts["date"] = date.strftime("%Y-%m-%d %H:%M:%S")
    except (TypeError, ValueError, IndexError, OverflowError):
        facts["date"] = None
    return facts | {"key": _key(path), "size": size}


@dataclass(frozen=True, slots=True, kw_only=True)
class MaildirArchive:
    """Archive of sent mail. `authoritative`: mail is delivered into this Maildir itself, so a
    missing mail was not sent.

    `copies` are further Maildirs, to which the server delivers blind copies: a mail found there was
    sent, a missing one may have been sent.
    """

    path: Path
    authoritative: bool
    copies: tuple[Path, ...] = ()

    def holds(self, message_id: str) -> bool:
        return any(find(place, message_id) for place in (self.path, *self.copies))

    def keep(self, message: bytes) -> None:
        if not self.authoritative:
            deliver(self.path, message)
