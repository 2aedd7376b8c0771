"""`python -m swingbot.adapters.mail_child MEMORY SECONDS ANSWER`: the child of mail_reader."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import IO, Any, Final

from swingbot.adapters import limits
from swingbot.adapters.reader_child import Answer, serve
from swingbot.core.mail.message import PostedMail, is_message_id
from swingbot.core.mail.posting import is_posting
from swingbot.core.patchset.mailbox import RawMail, raw_mail, take_headers
from swingbot.core.patchset.mime import decode, header_text, texts
from swingbot.core.patchset.model import PatchFile, PatchSource, SeriesError, SeriesPatch
from swingbot.core.patchset.read import read_series
from swingbot.core.patchset.touched import touched_files

_SHOWN: Final = ("subject", "from", "to", "cc", "date", "message-id", "in-reply-to")


def _series(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """Read the patches of `sources`, whose files follow each other with these sizes."""
    sources = [
        PatchSource(
            name=source["name"],
            files=tuple(
                PatchFile(name=name, data=file.read(size)) for name, size in source["files"]
            ),
            ordered=source["ordered"],
            ignored=tuple(source["ignored"]),
        )
        for source in document["sources"]
    ]
    try:
        series = read_series(sources, stack=document["stack"])
    except SeriesError as error:
        return {"wrong": str(error)}
    return {**asdict(series), "patches": list(map(_patch, series.patches))}


def _patch(patch: SeriesPatch) -> dict[str, Any]:
    date = patch.date.isoformat() if patch.date else None
    touched = [
        [[name.decode("latin-1") for name in names] for names in (file.before, file.after)]
        + [file.length]
        for file in touched_files(patch.diff)
    ]
    diff = patch.diff.decode("latin-1")
    return {**asdict(patch), "date": date, "diff": diff, "touched": touched}


def _heads(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """Read the headers of mails that follow each other with these `sizes`."""
    return {"heads": [_head(_delivered(file.read(size))) for size in document["sizes"]]}


def _mail(_: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """Read the headers of a mail and its first text."""
    mail = _delivered(file.read())
    try:
        parts, _html = texts(mail)
        own = [decode(part.text, part.charset) for part in parts if not part.attached]
        text = own[0] if own else "(this mail has no plain text)"
    except SeriesError as error:
        text = f"({error})"
    return {"head": _head(mail), "text": text}


def _delivered(data: bytes) -> RawMail:
    return take_headers(data.replace(b"\r\n", b"\n"))


def _head(mail: RawMail) -> dict[str, str]:
    return {name: header_text(mail.header(name.encode())) for name in _SHOWN}


def _posting(document: dict[str, Any], file: IO[bytes]) -> dict[str, Any]:
    """Find a mail in a file of mails, within `seconds`, as `list_archive.find_posted`."""
    deadline = time.monotonic() + document["seconds"]
    fits, first = _fits(document), bool(document["message_id"])
    posted: PostedMail | None = None
    for head in _archived(file):
        if fits(head):
            posted = _posted(head) or posted
        if (first and posted) or time.monotonic() > deadline:
            break
    return {"posted": posted and asdict(posted)}


def _fits(document: Mapping[str, str]) -> Callable[[RawMail], bool]:
    if message_id := document["message_id"]:
        return lambda head: message_id in head.ids(b"message-id")[:1]
    subject, author = document["subject"], document["author"]
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


def _archived(mbox: IO[bytes]) -> Iterator[RawMail]:
    """Yield the headers of each mail, which begin after a line `From ` and end at an empty one."""
    head: list[bytes] | None = None
    size = 0
    while line := mbox.readline(limits.ARCHIVED_MAIL_BYTES):
        if line.startswith(b"From "):
            head, size = [], 0
        elif head is not None and (line.strip() == b"" or size > limits.ARCHIVED_MAIL_BYTES):
            yield raw_mail(b"".join(head)[: limits.ARCHIVED_MAIL_BYTES])
            head = None
        elif head is not None:
            head.append(line)
            size += len(line)


READERS: Final[Mapping[str, Answer]] = {
    "series": _series,
    "heads": _heads,
    "mail": _mail,
    "posting": _posting,
}


if __name__ == "__main__":
    serve(
        lambda document, file: READERS[document["read"]](document, file), *map(int, sys.argv[1:4])
    )
