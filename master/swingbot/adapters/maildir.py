"""Maildirs: where the embedded mail server delivers, and where copies of sent mail are kept."""

from __future__ import annotations

import mailbox
import os
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from email.parser import BytesHeaderParser, BytesParser
from email.policy import default
from pathlib import Path

_FOLDERS = ("new", "cur")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredMail:
    """One delivered mail; `subject` and `message_id` are as its headers say, empty where it has none."""

    path: Path
    message_id: str
    subject: str


def deliver(maildir: Path, message: bytes) -> Path:
    """Put `message` into `maildir` (made if need be): whole or not at all, on disk when this returns. Raises OSError."""
    # each of them, always: `create=True` would trust a directory whose making was interrupted
    for name in ("tmp", "new", "cur"):
        (maildir / name).mkdir(parents=True, exist_ok=True)
    box = mailbox.Maildir(maildir, create=False)
    key = box.add(message.replace(b"\r\n", b"\n"))
    folder = os.open(maildir / "new", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)  # the file is on disk already; this is its name
    finally:
        os.close(folder)
    return maildir / "new" / key


def letters(maildir: Path) -> list[DeliveredMail]:
    """Everything delivered, oldest first; a Maildir that is not there yet is empty, a file that is no mail has no subject."""
    found = [_letter(path) for path in files(maildir)]
    return [letter for letter in found if letter is not None]


def find(maildir: Path, message_id: str) -> list[DeliveredMail]:
    """The letters with that Message-ID; more than one means that something was sent twice."""
    return [letter for letter in letters(maildir) if letter.message_id == message_id]


def read(letter: DeliveredMail) -> EmailMessage:
    """The whole letter, parsed. Raises OSError if it is gone."""
    parsed = BytesParser(policy=default).parsebytes(letter.path.read_bytes())
    assert isinstance(parsed, EmailMessage)
    return parsed


def files(maildir: Path) -> Iterator[Path]:
    """The files of all letters, oldest first."""
    paths = [
        path
        for folder in _FOLDERS
        if (maildir / folder).is_dir()
        for path in (maildir / folder).iterdir()
    ]
    return iter(sorted(paths, key=lambda path: path.name))


def _letter(path: Path) -> DeliveredMail | None:
    try:
        with path.open("rb") as file:
            head = file.read(64 * 1024)
    except OSError:
        return None  # moved from new/ to cur/ or deleted by a mail reader meanwhile
    headers = BytesHeaderParser(policy=default).parsebytes(head)
    return DeliveredMail(
        path=path, message_id=_header(headers, "Message-ID"), subject=_header(headers, "Subject")
    )


def _header(headers: object, name: str) -> str:
    """One header as text; what a stranger wrote may be beyond parsing, and then it is empty."""
    try:
        return str(headers[name] or "").strip()  # type: ignore[index]
    except (ValueError, IndexError, KeyError, AttributeError, TypeError):
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaildirArchive:
    """The archive that says what left. `authoritative`: mail is delivered into this very Maildir, so what is missing was not sent.

    `copies` are further Maildirs, to which the server delivers hidden copies: what is there was sent, what is not may have been.
    """

    path: Path
    authoritative: bool
    copies: tuple[Path, ...] = ()

    def holds(self, message_id: str) -> bool:
        return any(find(place, message_id) for place in (self.path, *self.copies))

    def keep(self, message: bytes) -> None:
        if not self.authoritative:
            deliver(self.path, message)
