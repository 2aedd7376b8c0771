"""Maildirs: the destination of the embedded mail server, and the store for copies of sent mail."""

from __future__ import annotations

import mailbox
import os
import re
import stat
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from swingbot.adapters import limits
from swingbot.adapters.mail_reader import Head, read_heads, read_mail
from swingbot.adapters.remembered import REMEMBERED_BYTES, Remembered
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


class DeliveredHeads:
    """Headers of delivered mails. A delivered mail stays as it is, so the child that reads mails
    is started for new ones alone. At most REMEMBERED_BYTES of headers are remembered.
    """

    def __init__(self) -> None:
        self._known: dict[_Identity, Head] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def of(self, paths: Iterable[Path]) -> dict[Path, tuple[Head, int]]:
        """Return the headers and the size of each mail that is still there. Raises Unreadable."""
        found = {path: identity for path in paths if (identity := _identity(path)) is not None}
        with self._lock:
            heads = {path: self._known.get(identity) for path, identity in found.items()}
        read: list[Path] = []

        def starts() -> Iterator[bytes]:
            for path in (path for path, head in heads.items() if head is None):
                if (start := _start(path)) is not None:
                    read.append(path)
                    yield start

        new: list[Head] = read_heads(starts()) if None in heads.values() else []
        with self._lock:
            for path, head in zip(read, new, strict=True):
                heads[path] = head
                self._remember(found[path], head)
        return {path: (head, found[path].size) for path, head in heads.items() if head is not None}

    def _remember(self, identity: _Identity, head: Head) -> None:
        if identity not in self._known:
            self._known[identity] = head
            self._bytes += _size(head)
        while self._bytes > REMEMBERED_BYTES:
            self._bytes -= _size(self._known.pop(next(iter(self._known))))


def letters(maildir: Path, heads: DeliveredHeads | None = None) -> list[DeliveredMail]:
    """Return all delivered mails, oldest first.

    A missing Maildir is empty; a file that is not a mail has no subject. Raises Unreadable.
    """
    found = (heads or DeliveredHeads()).of(files(maildir))
    return [
        DeliveredMail(path=path, message_id=head["message-id"], subject=head["subject"])
        for path, (head, _) in found.items()
    ]


def find(
    maildir: Path, message_id: str, heads: DeliveredHeads | None = None
) -> list[DeliveredMail]:
    """Return the mails with that Message-ID; more than one means that a mail was sent twice."""
    return [letter for letter in letters(maildir, heads) if letter.message_id == message_id]


def files(maildir: Path) -> Iterator[Path]:
    """Yield the files of all mails, oldest first."""
    paths = [
        path
        for folder in _FOLDERS
        if (maildir / folder).is_dir()
        for path in (maildir / folder).iterdir()
    ]
    return iter(sorted(paths, key=lambda path: path.name))


class _Identity(NamedTuple):
    """What a file keeps when a mail reader moves it from new/ to cur/."""

    key: str
    inode: int
    size: int  # bytes
    changed_ns: int


def _identity(path: Path) -> _Identity | None:
    """Return None if the path is not a file, or the mail was moved or deleted meanwhile."""
    try:
        facts = path.stat()
    except OSError:
        return None
    if not stat.S_ISREG(facts.st_mode):
        return None
    return _Identity(_key(path), facts.st_ino, facts.st_size, facts.st_mtime_ns)


def _start(path: Path, most: int = limits.ARCHIVED_MAIL_BYTES) -> bytes | None:
    """Return the first `most` bytes of a mail; None as `_identity`."""
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError:
        return None


def _size(head: Head) -> int:
    return sum(map(len, head.values()))


@dataclass(frozen=True, slots=True)
class DeliveredMails:
    """The mails of a Maildir for pages. Their `key` is the file's name without Maildir's flags."""

    maildir: Path
    _heads: DeliveredHeads = field(default_factory=DeliveredHeads, compare=False, repr=False)
    _mails: Remembered[_Identity, tuple[Head, str]] = field(
        default_factory=lambda: Remembered(lambda mail: len(mail[1])), compare=False, repr=False
    )

    def newest(self, most: int) -> tuple[list[dict[str, Any]], int]:
        """Return the headers, key and size of the newest mails, and the number of all."""
        found = {path: _identity(path) for path in files(self.maildir)}
        newest = sorted(
            ((one.changed_ns, path.name, path) for path, one in found.items() if one), reverse=True
        )
        shown = [path for _, _, path in newest[:most]]
        try:
            heads = self._heads.of(shown)
        except Unreadable:
            heads = {path: ({}, one.size) for path in shown if (one := found[path])}
        return [_facts(path, size, head) for path, (head, size) in heads.items()], len(newest)

    def mail(self, key: str) -> dict[str, Any] | None:
        """Return a mail with its `text`; None if there is none with this key."""
        if not _KEY.fullmatch(key):
            return None
        path = next((path for path in files(self.maildir) if _key(path) == key), None)
        one = _identity(path) if path else None
        data = _start(path, MAIL_BYTES) if path else None
        if path is None or one is None or data is None:
            return None
        try:
            head, text = self._mails.get(one, lambda: read_mail(data))
        except Unreadable as error:
            head, text = {}, f"({error})"
        return _facts(path, one.size, head) | {"text": text}


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
    _heads: DeliveredHeads = field(default_factory=DeliveredHeads, compare=False, repr=False)

    def holds(self, message_id: str) -> bool:
        return any(find(place, message_id, self._heads) for place in (self.path, *self.copies))

    def keep(self, message: bytes) -> None:
        if not self.authoritative:
            deliver(self.path, message)
