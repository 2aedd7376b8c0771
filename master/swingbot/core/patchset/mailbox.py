"""Split a file into mails with their headers.

Works on bytes; the time is linear in the size of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from swingbot.core import limits
from swingbot.core.patchset.model import SeriesError

# As in `git mailsplit`: a time of day and a year after "From ", followed by a header.
_FROM_LINE: Final = re.compile(
    rb"^From [^\n]{0,300}?\d{1,2}:\d\d(?::\d\d)? [^\n]{0,40}\d{4}[^\n]{0,10}\n"
    rb"(?=[A-Za-z][A-Za-z0-9-]{0,70}:)",
    re.MULTILINE,
)
_HEADER: Final = re.compile(rb"([A-Za-z][A-Za-z0-9-]{0,70}):[ \t]*(.*)", re.DOTALL)
_OF_A_MAIL: Final = frozenset({b"from", b"subject", b"mime-version", b"message-id", b"date"})
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True)
class RawMail:
    """Headers by lower-case name (the first of each, unfolded) and the body, with LF line ends.

    `headers` is empty for a file that is not a mail: a diff, or a description with a diff.
    """

    headers: dict[bytes, bytes]
    body: bytes

    def header(self, name: bytes) -> bytes:
        """Return the value of a header; empty if there is none.

        Raises SeriesError if it is too long.
        """
        value = self.headers.get(name, b"")
        if len(value) > limits.MAIL_HEADER_BYTES:
            raise SeriesError(
                f"the header {name.decode().title()} has {len(value)} bytes;"
                f" the maximum is {limits.MAIL_HEADER_BYTES}"
            )
        return value


def split_mails(data: bytes) -> list[RawMail]:
    """Return the mails of a mailbox, or the file as a single mail or patch. Raises SeriesError."""
    refuse_binary(data)
    data = data.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    mails: list[RawMail] = []
    for piece in _pieces(data):
        mails.append(raw_mail(piece))
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
    if _FROM_LINE.match(data):
        return True
    first = _HEADER.match(data[:80])
    return first is not None and first[1].lower() in _OF_A_MAIL


def raw_mail(data: bytes) -> RawMail:
    """Parse a mail without its `From ` line.

    A file without mail headers is all body. Raises SeriesError.
    """
    if data[: data.find(b"\n") + 1].endswith(
        b"\r\n"
    ):  # how it was sent; a file's own CR is a second one
        data = data.replace(b"\r\n", b"\n")
    headers, body = take_headers(data)
    if not headers.keys() & {b"from", b"subject"}:
        return RawMail({}, data)
    return RawMail(headers, body)


def _pieces(data: bytes) -> Iterator[bytes]:
    start = 0
    for match in _FROM_LINE.finditer(data):
        if data[start : match.start()].strip():
            yield data[start : match.start()]
        start = match.end()
    if data[start:].strip() or start == 0:
        yield data[start:]


def take_headers(data: bytes) -> tuple[dict[bytes, bytes], bytes]:
    """Return the headers at the beginning of `data` by lower-case name, and the rest.

    Headers end at an empty line, or before a line that is not a header. Raises SeriesError for too
    many.
    """
    headers: dict[bytes, list[bytes]] = {}
    current: list[bytes] | None = None
    start = lines = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        line = (
            data[start:end] if end - start <= limits.MAIL_HEADER_BYTES else data[start : start + 80]
        )
        match = _HEADER.match(line)
        if line.strip() == b"":
            start = end
            break
        if line[:1] in (b" ", b"\t") and current is not None:
            current.append(data[start:end].strip())
        elif match is not None:
            current = [data[start + match.start(2) : end].strip()]
            headers.setdefault(match[1].lower(), current)
        else:
            break
        start, lines = end, lines + 1
        if lines > limits.MAIL_HEADER_LINES:
            raise SeriesError(f"a mail has more than {limits.MAIL_HEADER_LINES} header lines")
    return {name: b" ".join(values) for name, values in headers.items()}, data[start:]
