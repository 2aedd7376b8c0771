"""Maildirs: the destination of the embedded mail server, and the store for copies of sent mail."""

from __future__ import annotations

import mailbox
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from swingbot.core.patchset.mailbox import take_headers
from swingbot.core.patchset.mime import decode, header_text

_FOLDERS = ("new", "cur")


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

    A missing Maildir is empty; a file that is not a mail has no subject.
    """
    mails = [_letter(path) for path in files(maildir)]
    return [letter for letter in mails if letter is not None]


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


def _letter(path: Path) -> DeliveredMail | None:
    try:
        with path.open("rb") as file:
            head = file.read(64 * 1024)
    except OSError:
        return None  # moved from new/ to cur/ or deleted by a mail reader in the meantime
    mail = take_headers(head.replace(b"\r\n", b"\n"))
    return DeliveredMail(
        path=path,
        message_id=decode(mail.header(b"message-id")),
        subject=header_text(mail.header(b"subject")),
    )


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
