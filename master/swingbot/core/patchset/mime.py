"""Decode the text parts of a mail, its headers and its attached files, in linear time.

The number of parts and their nesting are limited.
"""

from __future__ import annotations

import binascii
import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
_PARAMETER: Final = re.compile(
    r';\s*([^\s=;"*]{1,60})(?:\*\d{0,2}){0,2}\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))'
)
_WORD: Final = re.compile(r"=\?([^?*\s]{1,60})(?:\*[^?\s]{0,20})?\?([qb])\?", re.IGNORECASE)


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
        kind, parameters = _parameters(mail.header(b"content-type"))
        if kind.startswith("multipart/"):
            if depth == limits.MAIL_PART_DEPTH:
                raise SeriesError(
                    f"a mail has parts nested more than {limits.MAIL_PART_DEPTH} deep"
                )
            yield from self._multipart(mail, parameters.get("boundary", "").rstrip(), depth)
            return
        disposition, named = _parameters(mail.header(b"content-disposition"))
        file = (named.get("filename") or parameters.get("name", "")).lower()
        self.html = self.html or kind == "text/html"
        if kind != "message/rfc822" and not _is_text(kind, file):
            return
        text = _transfer(mail)
        refuse_binary(text)
        yield TextPart(
            text,
            parameters.get("charset", "utf-8"),
            attached=disposition == "attachment" or bool(file) or kind in _PATCH_TYPES,
            flowed=parameters.get("format", "").lower() == "flowed",
            mail=kind == "message/rfc822",
        )

    def _multipart(self, mail: RawMail, boundary: str, depth: int) -> Iterator[TextPart]:
        if not boundary:
            raise SeriesError("a mail has several parts but no boundary between them")
        for piece in _split(mail.body, boundary.encode("utf-8", "replace")):
            self.parts += 1
            if self.parts > limits.MAIL_PARTS:
                raise SeriesError(f"a mail has more than {limits.MAIL_PARTS} parts")
            part = take_headers(piece)
            if part.problem:
                raise SeriesError(part.problem)
            yield from self.texts(part, depth + 1)


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
    """Return a header's value with its encoded words (RFC 2047) decoded.

    Words of one charset in a row are decoded together: mailers cut characters between them.
    """
    text = decode(value)
    pieces: list[tuple[str, bytes]] = []  # charset, empty for plain text, and bytes
    at = 0
    while (word := _WORD.search(text, at)) and (end := text.find("?=", word.end())) >= 0:
        plain = text[at : word.start()]
        if plain.strip() or not pieces:
            pieces.append(("", plain.encode()))
        charset, data = word[1].lower(), _unquoted(text[word.end() : end].encode(), word[2])
        if pieces[-1][0] == charset:
            data = pieces.pop()[1] + data
        pieces.append((charset, data))
        at = end + 2
    pieces.append(("", text[at:].encode()))
    return "".join(decode(data, charset or "utf-8") for charset, data in pieces)


def _unquoted(text: bytes, encoding: str) -> bytes:
    if encoding in "qQ":
        return binascii.a2b_qp(text, header=True)
    try:
        return binascii.a2b_base64(text + b"==")
    except binascii.Error:
        return text


def _parameters(value: bytes) -> tuple[str, Mapping[str, str]]:
    """Return the value of a header such as Content-Type, in lower case, and its parameters.

    Parts of one (`name*0*`) are joined, and the charset of a name (RFC 2231) is not kept.
    """
    text = decode(value)
    found: dict[str, str] = {}
    for name, quoted, plain in _PARAMETER.findall(text):
        word = re.sub(r"\\(.)", r"\1", quoted) or plain
        found[name.lower()] = found.get(name.lower(), "") + word.rpartition("''")[2]
    return text.partition(";")[0].strip().lower(), found


def _is_text(kind: str, file: str) -> bool:
    """Return True if a part of this type may contain a patch.

    Some mailers send patches as application/octet-stream.
    """
    if kind.count("/") != 1:
        return True
    if kind.startswith("text/"):
        return kind not in ("text/html", "text/calendar")
    return kind in _PATCH_TYPES or (kind.startswith("application/") and file.endswith(_PATCH_NAMES))


def _transfer(mail: RawMail) -> bytes:
    """Return the body after transfer decoding; as it is if the encoding is unknown, as git does."""
    encoding = mail.header(b"content-transfer-encoding").strip(b" \t\"';").lower()
    if encoding == b"quoted-printable":
        return binascii.a2b_qp(mail.body)
    if encoding != b"base64":
        return mail.body
    try:
        return binascii.a2b_base64(mail.body)
    except binascii.Error as error:
        raise SeriesError(f"a part of the mail is damaged base64 ({error})") from None


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
