"""Parts of every mail: a subject, a body of at most `BODY_BYTES`, and the mail it replies to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from swingbot.core.text.plain import clean, cut

BODY_BYTES = (
    8_000  # headers, with fifteen recipients, add less than 2 KB: the mail stays under 10 KB
)
_LONGEST_URL = 200  # characters; a longer one is left out
_LONGEST_ID = 200  # characters of a Message-ID in a header
_MOST_REFERENCES = 3
_ID = re.compile(r"<[!-;=?A-~]+@[!-;=?A-~]+>")
_RE = re.compile(r"\A(?:(?:re|aw|sv|fwd?): *)+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedMail:
    """The mail that the culprit was posted as.

    `message_id` has its <>; `subject` and `references` (oldest first) are empty if unknown.
    """

    message_id: str
    subject: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """One mail.

    `subject` is one line; `body` has lines of at most 78 columns (URLs and quoted shell words may
    be longer) and ends with a newline. `in_reply_to` and `references` (oldest first) hold
    Message-IDs with their <>; both are empty in a new thread.
    """

    subject: str
    body: str
    in_reply_to: str = ""
    references: tuple[str, ...] = ()


def thread_of(posted: PostedMail | None, own_subject: str) -> tuple[str, str, tuple[str, ...]]:
    """Subject, In-Reply-To and References of a reply to `posted`.

    `own_subject` is used if there is nothing to reply to, or its subject is unknown.
    """
    if posted is None or not is_message_id(posted.message_id):
        return clean(own_subject), "", ()
    references = tuple(
        dict.fromkeys(
            [*(id_ for id_ in posted.references if is_message_id(id_)), posted.message_id]
        )
    )
    kept = (
        references
        if len(references) <= _MOST_REFERENCES
        else (references[0], *references[1 - _MOST_REFERENCES :])
    )
    return reply_subject(posted.subject) or clean(own_subject), posted.message_id, kept


def is_message_id(text: str) -> bool:
    """Return True if `text` is one line of ASCII in <>, short enough for a header."""
    return len(text) <= _LONGEST_ID and bool(_ID.fullmatch(text))


def reply_subject(subject: str) -> str:
    """`Re: [PATCH v2 4/5] mm: ...` with a single Re:; empty for an empty subject."""
    bare = _RE.sub("", clean(subject))
    return f"Re: {cut(bare, 150)}" if bare else ""


def web_address(url: str) -> str:
    """`url` if it is safe in a mail, else an empty text."""
    return (
        url
        if url.isascii() and clean(url) == url and " " not in url and len(url) <= _LONGEST_URL
        else ""
    )


def as_text(lines: Iterable[str]) -> str:
    return "".join(f"{line.rstrip()}\n" for line in lines)


def size(lines: Iterable[str]) -> int:
    return len(as_text(lines).encode())


def fitting(lines: Sequence[str], end: Sequence[str], keep: int) -> str:
    """Return the `lines` that fit before `end`, at least the first `keep`; marks the cut."""
    kept, cut_here = list(lines), ["", "(cut here; the page has everything)"]
    while size([*kept, *cut_here, *end]) > BODY_BYTES and len(kept) > keep:
        kept.pop()
    return as_text([*kept, *cut_here, *end])
