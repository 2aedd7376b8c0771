"""Author, date, subject and commit message of a mail or patch file, and the text of its diff."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from swingbot.core import limits
from swingbot.core.patchset.diff import cut_off, has_diff, unix_lines
from swingbot.core.patchset.mailbox import (
    RawMail,
    begins_as_mail,
    raw_mail,
    refuse_binary,
    split_mails,
)
from swingbot.core.patchset.mime import TextPart, decode, header_text, texts
from swingbot.core.patchset.model import SeriesError
from swingbot.core.patchset.subject import Tagged, read_subject
from swingbot.core.text.plain import clean, cut

_IN_BODY: Final = re.compile(r"(From|Subject|Date): *+(.*)|(\[PATCH\] .*)", re.IGNORECASE)
_PASTED: Final = re.compile(r">?From [0-9a-f]{40,64} Mon Sep 17 00:00:00 2001")
_SHOWN: Final = re.compile(rb"commit [0-9a-f]{7,64}\b[^\n]{0,200}\n(?:[A-Z][a-z]+: [^\n]*\n){1,5}")
_SCISSORS: Final = (">8", "8<", ">%", "%<")


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchMail:
    """A parsed mail or patch file.

    `subject` is as in the mail, `tagged` its parsed form. `rest` is the text after the commit
    message: notes, diff, signature. `is_mail` is False for a file without headers. `problem` says
    why its text cannot be read. What is attached to a mail that answers one, or was pasted into a
    mail, is a part of it: its `poster`, `parents` and `reply` are those of that mail.
    """

    subject: str
    tagged: Tagged
    author: str
    poster: str  # as `author`; empty if unknown
    date: datetime | None
    message_id: str | None
    parents: tuple[str, ...]  # Message-IDs, the mail that it answers first; empty if unknown
    reply: bool
    top: PatchMail | None = None  # the mail of which it is a part
    body: str = ""
    rest: bytes = b""
    has_diff: bool = False
    is_mail: bool = True
    html: bool = False
    problem: str = ""

    @property
    def is_patch(self) -> bool:
        """Whether it is to be applied, if it belongs to the posting.

        A cover letter may contain a diff between two versions of its series.
        """
        tagged = self.tagged
        numbered = tagged.number is not None or (tagged.patch and bool(self.problem))
        return tagged.number != 0 and (self.has_diff or numbered)

    @property
    def label(self) -> str:
        """The subject for an error or a list: one line of at most 100 columns."""
        return cut(self.subject or self.body.partition("\n")[0], 100) or "without a subject"


def read_letters(data: bytes) -> list[PatchMail]:
    """Return the mails of a file and those attached to them, in order. Raises SeriesError if they
    exceed a limit; what else is wrong with one is its `problem`.
    """
    letters: list[PatchMail] = []
    header_bytes = 0
    top: PatchMail | None = None
    for mail in split_mails(data):
        first = len(letters)
        for letter, size in _letters(mail, top if mail.inside else None, 0):
            letters.append(letter)
            header_bytes += size
            if len(letters) > limits.SERIES_MAILS or header_bytes > limits.MAILS_HEADER_BYTES:
                raise SeriesError(
                    f"it has more than {limits.SERIES_MAILS} mails, or headers of more than"
                    f" {limits.MAILS_HEADER_BYTES >> 20} MiB; give only the series"
                )
        top = top if mail.inside else letters[first]
    return letters


def message_of(letter: PatchMail, fallback: str) -> tuple[str, str]:
    """Return (subject, commit message); `fallback` is the subject of a bare diff.

    Raises SeriesError.
    """
    title, body = letter.tagged.title, letter.body
    if not title:
        first, _, after = body.partition("\n")
        title, body = clean(first), after.lstrip("\n")
    title = title or clean(fallback) or "a patch without a subject"
    if len(title) > limits.PATCH_SUBJECT_CHARACTERS:
        raise SeriesError(
            f"the subject has {len(title)} characters; the maximum is"
            f" {limits.PATCH_SUBJECT_CHARACTERS}"
        )
    return title, f"{title}\n\n{body}\n" if body else f"{title}\n"


def _letters(mail: RawMail, top: PatchMail | None, depth: int) -> Iterator[tuple[PatchMail, int]]:
    """Yield a mail and those attached to it, each with the bytes of its headers."""
    letter, nested = _letter(mail, top), list[RawMail]()
    size = sum(map(len, mail.headers.values()))
    try:
        letter, nested, in_text = _with_text(mail, letter)
        size += in_text
        if nested and depth == limits.MAIL_DEPTH:
            raise SeriesError(f"it has mails attached to mails more than {limits.MAIL_DEPTH} deep")
    except SeriesError as error:
        letter, nested = replace(letter, problem=str(error)), []
    yield letter, size
    for inner in nested:
        yield from _letters(inner, letter, depth + 1)


def _letter(mail: RawMail, top: PatchMail | None) -> PatchMail:
    """Return what the headers say."""
    subject, author = header_text(mail.header(b"subject")), _author(mail.header(b"from"))
    tagged = read_subject(subject)
    within = top if top is not None and (top.reply or top.parents or mail.inside) else None
    poster, parents = ("", ()) if mail.formatted else (author, _parents(mail))
    return PatchMail(
        subject=clean(subject),
        tagged=tagged,
        author=author,
        poster=within.poster if within else poster,
        date=_date(header_text(mail.header(b"date"))),
        message_id=next(iter(mail.ids(b"message-id")), None),
        parents=within.parents if within else parents,
        reply=tagged.reply or (top is not None and top.reply),
        top=within and (within.top or within),
        is_mail=bool(mail.headers),
    )


def _parents(mail: RawMail) -> tuple[str, ...]:
    """Return the mails that one answers; their Message-IDs may be unreadable."""
    ids = mail.ids(b"in-reply-to")[:1] + mail.ids(b"references")[::-1]
    return tuple(ids) or (("?",) if mail.header(b"in-reply-to") else ())


def _with_text(mail: RawMail, letter: PatchMail) -> tuple[PatchMail, list[RawMail], int]:
    """Return the letter with its text, the mails attached to it, and the length of the headers in
    the text. Raises SeriesError.
    """
    if mail.problem:
        raise SeriesError(mail.problem)
    refuse_binary(mail.body)
    if not mail.headers and _SHOWN.match(mail.body):
        raise SeriesError(
            "it is output of `git show` or `git log`; write patches with `git format-patch`"
        )
    own: list[TextPart] = []
    nested: list[RawMail] = []
    parts, html = texts(mail) if mail.headers else ([TextPart(mail.body, "utf-8")], False)
    for part in parts:
        if part.mail:
            nested.append(raw_mail(part.text))
        elif part.attached and begins_as_mail(part.text):
            nested += split_mails(part.text)
        else:
            own.append(part)
    text, rest = _message_and_rest(own)
    if (size := len(text.encode())) > limits.PATCH_MESSAGE_BYTES:
        raise SeriesError(
            f"the commit message has {size >> 10} KiB;"
            f" the maximum is {limits.PATCH_MESSAGE_BYTES >> 10} KiB"
        )
    headers, body = _body(text)
    subject = headers.get("subject", "")
    read = replace(
        letter,
        subject=clean(subject) or letter.subject,
        tagged=_retitled(letter.tagged, read_subject(subject)) if subject else letter.tagged,
        author=_author(headers["from"].encode()) if "from" in headers else letter.author,
        date=_date(header_text(headers["date"].encode())) if "date" in headers else letter.date,
        body=body,
        rest=rest,
        has_diff=has_diff(rest),
        html=html,
    )
    return read, nested, sum(map(len, headers.values()))


def _retitled(sent: Tagged, inside: Tagged) -> Tagged:
    """The title is that of the subject in the text; the tags are those of the mail, if it has
    any.
    """
    return replace(sent, title=inside.title) if sent.patch else replace(inside, reply=sent.reply)


def _message_and_rest(parts: Sequence[TextPart]) -> tuple[str, bytes]:
    """Return the decoded text before the notes or the diff, and everything after it unchanged.

    Raises SeriesError.
    """
    message: list[str] = []
    rest: list[bytes] = []
    for part in parts:
        text = unix_lines(part.text)
        if part.flowed and has_diff(text):
            raise SeriesError(
                "the mail is format=flowed, which changes the spaces of a diff;"
                " send it with `git send-email` or as an attachment"
            )
        before, after = (b"", text) if rest else cut_off(text)
        message.append(decode(before, part.charset))
        if after:
            rest.append(after if after.endswith(b"\n") else after + b"\n")
    return "\n".join(message), b"".join(rest)


def _body(text: str) -> tuple[dict[str, str], str]:
    """Return headers in the body, which override those of the mail, and the commit message."""
    lines = [line.rstrip() for line in text.replace("\r", "").split("\n")]
    marked = any(mark in text for mark in _SCISSORS)
    cuts = [number for number, line in enumerate(lines) if marked and _is_scissors(line)]
    lines = lines[cuts[-1] + 1 :] if cuts else lines
    raw = [line.rstrip("\r") for line in text.split("\n")][cuts[-1] + 1 if cuts else 0 :]
    if "-- " in raw:
        lines = lines[: raw.index("-- ")]
    headers, start = _in_body_headers(lines)
    return headers, re.sub(r"\n{3,}", "\n\n", "\n".join(lines[start:]).strip("\n"))


def _in_body_headers(lines: Sequence[str]) -> tuple[dict[str, str], int]:
    """Return `From:`, `Subject:` and `Date:` before the first line of text, and its position.

    Raises SeriesError if one is too long.
    """
    found: dict[str, list[str]] = {}
    start = next((number for number, line in enumerate(lines) if line), 0)
    last: list[str] | None = None
    while start < len(lines) and lines[start]:
        header = _IN_BODY.fullmatch(lines[start])
        if header is not None:
            name = (header[1] or "subject").lower()
            last = found.setdefault(name, [header[2] or header[3] or ""])
        elif last is not None and lines[start][0] in " \t":
            last.append(lines[start].strip())
        elif not _PASTED.fullmatch(lines[start]):
            break
        start += 1
    values = {name: " ".join(given) for name, given in found.items()}
    for name, value in values.items():
        if len(value) > limits.MAIL_HEADER_BYTES:
            raise SeriesError(
                f"the header {name.title()} in the text has {len(value)} characters;"
                f" the maximum is {limits.MAIL_HEADER_BYTES}"
            )
    if "subject" in values:
        values["subject"] = header_text(values["subject"].encode())
    return values, start


def _is_scissors(line: str) -> bool:
    """Return True if git treats it as scissors: 8 columns or more, mostly dashes, with `>8` or
    `8<`.
    """
    text = line.strip()
    scissors = sum(text.count(each) for each in _SCISSORS) if len(text) <= 200 else 0
    dashes = text.count("-")
    return (
        scissors > 0
        and len(text) >= 8
        and scissors < dashes
        and len(text) < 3 * (dashes + 2 * scissors)
    )


def _author(value: bytes) -> str:
    """Return `Name <address>` from a From header as git does; empty if it has no address."""
    text = decode(value)
    before, bracket, after = text.rpartition("<")
    name, address = (before, after.partition(">")[0]) if bracket else _old_style(text)
    name, address = (
        clean("".join(c for c in header_text(each.strip().encode()) if c not in '<>"\\'))
        for each in (name, address)
    )
    name, address = name.strip(" .,:;'"), address.replace(" ", "").strip(".,:;'")
    if not address:
        return ""
    return f"{name or address.partition('@')[0]} <{address}>"


def _old_style(text: str) -> tuple[str, str]:
    """Parse `address (Name)`, or the address alone."""
    address, _, name = text.partition("(")
    return name.rpartition(")")[0], address if "@" in address else ""


def _date(value: str) -> datetime | None:
    """Return the date with its time zone; None unless from 1970 to 2099, which git can store."""
    try:
        date = parsedate_to_datetime(value.strip()[:100])
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return date if date.timestamp() >= 0 and date.year <= 2099 else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
