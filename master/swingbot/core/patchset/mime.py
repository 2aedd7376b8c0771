"""Decode the text parts of a mail and its attached files.

The number of parts and their nesting are limited.
"""

from __future__ import annotations

import binascii
import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from typing import Final

from swingbot.core import limits
from swingbot.core.patchset.mailbox import RawMail, refuse_binary, take_headers
from swingbot.core.patchset.model import SeriesError

_PATCH_NAMES: Final = (".patch", ".diff", ".mbox", ".mbx", ".eml", ".txt")
_PATCH_TYPES: Final = ("text/x-patch", "text/x-diff", "application/x-patch", "application/x-diff")
# Text codecs that decode in linear time. Others in Python, such as punycode, do not.
_CHARSETS: Final = re.compile(
    r"ascii|utf-8|iso8859-\d{1,2}|cp\d{3,4}|koi8-[ru]"
    r"|gb2312|gbk|gb18030|big5|shift_jis|euc_(?:jp|kr)|iso2022_(?:jp|kr)"
)


@dataclass(frozen=True, slots=True)
class TextPart:
    """A text of a mail after transfer decoding, and its charset.

    `attached`: a file, not the mail's own text.
    """

    text: bytes
    charset: str
    attached: bool = False
    flowed: bool = False
    mail: bool = False  # message/rfc822: a mail of its own


class _Walk:
    """Walks the parts of one mail and counts them."""

    def __init__(self) -> None:
        self.parts = 0
        self.html = False

    def texts(self, mail: RawMail, depth: int = 0) -> Iterator[TextPart]:
        kind = _content_type(mail)
        if kind.get_content_maintype() == "multipart":
            if depth == limits.MAIL_PART_DEPTH:
                raise SeriesError(
                    f"a mail has parts nested more than {limits.MAIL_PART_DEPTH} deep"
                )
            yield from self._multipart(mail, kind, depth)
            return
        name = kind.get_content_type()
        disposition = mail.header(b"content-disposition").lower()
        file = _file_name(mail, kind)
        self.html = self.html or name == "text/html"
        if name != "message/rfc822" and not _is_text(name, file):
            return
        text = _transfer(mail)
        refuse_binary(text)
        yield TextPart(
            text,
            str(kind.get_content_charset("utf-8")),
            attached=disposition.startswith(b"attachment") or bool(file) or name in _PATCH_TYPES,
            flowed=str(kind.get_param("format", "")).lower() == "flowed",
            mail=name == "message/rfc822",
        )

    def _multipart(self, mail: RawMail, kind: Message, depth: int) -> Iterator[TextPart]:
        boundary = kind.get_boundary()
        if not boundary:
            raise SeriesError("a mail has several parts but no boundary between them")
        for piece in _split(mail.body, boundary.encode("utf-8", "replace")):
            self.parts += 1
            if self.parts > limits.MAIL_PARTS:
                raise SeriesError(f"a mail has more than {limits.MAIL_PARTS} parts")
            yield from self.texts(_part(piece), depth + 1)


def texts(mail: RawMail) -> tuple[list[TextPart], bool]:
    """Return the texts of a mail in order, and whether it has HTML, which is not read.

    Raises SeriesError.
    """
    walk = _Walk()
    return list(walk.texts(mail)), walk.html


def decode(text: bytes, charset: str = "utf-8") -> str:
    """Decode `text`; falls back to UTF-8 and then Latin-1 for an unknown or wrong charset."""
    for name in (charset, "utf-8"):
        try:
            if _CHARSETS.fullmatch(codecs.lookup(name).name):
                return text.decode(name)
        except (LookupError, ValueError):  # UnicodeDecodeError; NUL in a name
            continue
    return text.decode("latin-1")


def header_text(value: bytes) -> str:
    """Return a header's value with its encoded words (RFC 2047) decoded."""
    text = decode(value)
    if "=?" not in text:
        return text
    try:
        pieces = decode_header(text)
    except (HeaderParseError, ValueError):
        return text
    return "".join(
        piece if isinstance(piece, str) else decode(piece, charset or "utf-8")
        for piece, charset in pieces
    )


def _content_type(mail: RawMail) -> Message:
    message = Message()
    value = mail.header(b"content-type")
    if len(value) > limits.MAIL_HEADER_BYTES // 4:
        raise SeriesError(f"the header Content-Type has {len(value)} bytes")
    message["Content-Type"] = decode(value) or "text/plain"
    return message


def _file_name(mail: RawMail, kind: Message) -> str:
    message = Message()
    message["Content-Disposition"] = decode(mail.header(b"content-disposition")[:2000]) or "inline"
    name = message.get_filename() or kind.get_param("name") or ""
    return str(name if isinstance(name, str) else name[-1]).lower()


def _is_text(kind: str, file: str) -> bool:
    """Return True if a part of this type may contain a patch.

    Some mailers send patches as application/octet-stream.
    """
    if kind.startswith("text/"):
        return kind not in ("text/html", "text/calendar")
    return kind in _PATCH_TYPES or (kind.startswith("application/") and file.endswith(_PATCH_NAMES))


def _transfer(mail: RawMail) -> bytes:
    encoding = mail.header(b"content-transfer-encoding").strip(b" \t\"'").lower()
    if encoding in (b"", b"7bit", b"8bit", b"binary"):
        return mail.body
    if encoding == b"quoted-printable":
        return binascii.a2b_qp(mail.body)
    if encoding == b"base64":
        try:
            return binascii.a2b_base64(mail.body)
        except binascii.Error as error:
            raise SeriesError(f"a part of the mail is damaged base64 ({error})") from None
    raise SeriesError(
        f"the mail has the transfer encoding {decode(encoding[:40])!r};"
        " send it with `git send-email`"
    )


def _part(piece: bytes) -> RawMail:
    headers, body = take_headers(piece)
    return RawMail(headers, body)


def _split(body: bytes, boundary: bytes) -> Iterator[bytes]:
    """Return the parts between the lines of a boundary, without the preamble."""
    line = re.compile(rb"^--" + re.escape(boundary) + rb"(--)?[ \t]*\n", re.MULTILINE)
    start: int | None = None
    for match in line.finditer(body + b"\n"):
        if start is not None:
            # The line end before a boundary belongs to the boundary, but git ends a diff with it.
            yield body[start : match.start()]
        start = match.end()
        if match[1]:
            return
    if start is not None:
        yield body[start:]
