"""Split a file into mails with their headers.

Works on bytes; the time is linear in the size of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from swingbot.core import limits
from swingbot.core.patchset.model import SeriesError

# As in `git mailsplit`: a time of day and a year after "From ", followed by a header.
_FROM_LINE: Final = re.compile(
    rb"^From [^\n]{0,300}?\d{1,2}:\d\d(?::\d\d)? [^\n]{0,40}\d{4}[^\n]{0,10}\n"
    rb"(?=[!-9;-~]{1,70}:|>From )",
    re.MULTILINE,
)
_FORMATTED: Final = re.compile(rb"From [0-9a-f]{40,64} Mon Sep 17 00:00:00 2001\r?\n")
_WITH_SUBJECT: Final = re.compile(rb"(?:[!-9;-~]+:[^\n]*\n|[ \t][^\n]*\n){0,20}?Subject:", re.I)
_HEADER: Final = re.compile(rb"([!-9;-~]{1,70}):[ \t]*(.*)", re.DOTALL)
_OF_A_MAIL: Final = frozenset({b"from", b"subject"})
_DECODED: Final = (
    *(b"from", b"subject", b"date"),
    *(b"content-type", b"content-disposition", b"content-transfer-encoding"),
)
_READ: Final = frozenset({*_DECODED, b"to", b"cc", b"message-id", b"in-reply-to", b"references"})
_MESSAGE_ID: Final = re.compile(rb"<[!-;=?A-~]{1,120}@[!-;=?A-~]{1,120}>")
_HEAD_BYTES: Final = 64 << 10  # in which the headers of a mail are looked for
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawMail:
    """Headers that are read, by lower-case name (the first of each, unfolded), and the body, with
    LF line ends.

    `headers` is empty for a file that is not a mail: a diff, or a description with a diff.
    `formatted`: as `git format-patch` writes it, so From is the author and not who posted it.
    `inside`: in the text of the mail before it. `problem` says why it cannot be read.
    """

    headers: dict[bytes, bytes]
    body: bytes
    formatted: bool = False
    inside: bool = False
    problem: str = ""

    def header(self, name: bytes) -> bytes:
        """Return the value of a header up to the maximum length; empty if there is none."""
        return self.headers.get(name, b"")[: limits.MAIL_HEADER_BYTES]

    def ids(self, name: bytes) -> list[str]:
        """Return the last Message-IDs, with their <>, in a header."""
        value = self.headers.get(name, b"")[-limits.MAIL_HEADER_BYTES :]
        return [found.decode() for found in _MESSAGE_ID.findall(value)]


def split_mails(data: bytes) -> list[RawMail]:
    """Return the mails of a mailbox, or the file as a single mail or patch. Raises SeriesError."""
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    mails: list[RawMail] = []
    for start, end, formatted, inside in _pieces(data):
        mail = raw_mail(data[start:end])
        mails.append(replace(mail, formatted=formatted, inside=inside))
        if len(mails) > limits.SERIES_MAILS:
            raise SeriesError(f"it has more than {limits.SERIES_MAILS} mails; give only the series")
    return mails


def refuse_binary(data: bytes) -> None:
    """Raise SeriesError unless the data is text in a charset that extends ASCII."""
    if data.startswith(_UTF16):
        raise SeriesError(
            "it is UTF-16 text; write patches with `git format-patch -o DIR`,"
            " not through a shell that converts them"
        )
    if b"\0" in data:
        raise SeriesError("it has NUL bytes, so it is not a text patch (unpack compressed files)")


def begins_as_mail(data: bytes) -> bool:
    """Return True if a file begins with a mailbox's `From ` line or with mail headers."""
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    return _FROM_LINE.match(data) is not None or bool(raw_mail(data[:_HEAD_BYTES]).headers)


def raw_mail(data: bytes) -> RawMail:
    """Parse a mail without its `From ` line. A file without mail headers is all body."""
    if data[: data.find(b"\n") + 1].endswith(
        b"\r\n"
    ):  # how it was sent; a file's own CR is a second one
        data = data.replace(b"\r\n", b"\n")
    mail = take_headers(data)
    return mail if mail.headers.keys() & _OF_A_MAIL else RawMail(headers={}, body=data)


def _pieces(data: bytes) -> Iterator[tuple[int, int, bool, bool]]:
    """Yield start and end of each mail, and whether it is `formatted` and `inside`.

    A file that begins with headers is one mail. In a file of mails as sent, what `git format-patch`
    wrote was pasted into a mail, and is a part of its text unless it has a subject.
    """
    first = _FROM_LINE.match(data)
    if first is None and raw_mail(data[:_HEAD_BYTES]).headers:
        yield 0, len(data), False, False
        return
    sent = first is not None and not _FORMATTED.match(data)
    start, formatted = 0, False
    for match in _FROM_LINE.finditer(data):
        written = _FORMATTED.match(match[0]) is not None
        head = data[match.end() : match.end() + limits.MAIL_HEADER_BYTES]
        if written and sent and not _WITH_SUBJECT.match(head):
            continue
        if not take_headers(data[match.end() : match.end() + _HEAD_BYTES]).headers:
            continue  # a sentence of a mail
        if data[start : match.start()].strip():
            yield start, match.start(), formatted, sent and formatted
        start, formatted = match.end(), written
    if data[start:].strip() or start == 0:
        yield start, len(data), formatted, sent and formatted


def take_headers(data: bytes) -> RawMail:
    """Parse a mail or a part of one. Headers end at an empty line, or before a line that is not a
    header.
    """
    headers: dict[bytes, list[bytes]] = {}
    current: list[bytes] | None = None
    start = lines = 0
    while start < len(data) and lines <= limits.MAIL_HEADER_LINES:
        end = data.find(b"\n", start) + 1 or len(data)
        line = data[start : min(end, start + 80)]
        match = _HEADER.match(line)
        if not line.strip():
            start = end
            break
        if line[:1] in (b" ", b"\t") and current is not None:
            current.append(data[start:end].strip())
        elif match is not None:
            current = [data[start + match.start(2) : end].strip()]
            if match[1].lower() in _READ:
                headers.setdefault(match[1].lower(), current)
        elif not line.startswith(b">From "):
            break
        start, lines = end, lines + 1
    values = {name: b" ".join(pieces) for name, pieces in headers.items()}
    return RawMail(headers=values, body=data[start:], problem=_problem(values, lines))


def _problem(values: dict[bytes, bytes], lines: int) -> str:
    if lines > limits.MAIL_HEADER_LINES:
        return f"a mail has more than {limits.MAIL_HEADER_LINES} header lines"
    for name in _DECODED:
        if len(values.get(name, b"")) > limits.MAIL_HEADER_BYTES:
            return (
                f"the header {name.decode().title()} has {len(values[name])} bytes;"
                f" the maximum is {limits.MAIL_HEADER_BYTES}"
            )
    return ""
