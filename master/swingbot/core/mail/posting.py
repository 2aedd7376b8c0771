"""The mail that a commit was posted as, from the trailers of its message."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from swingbot.core.mail.addresses import plain_address
from swingbot.core.mail.message import PostedMail, is_message_id
from swingbot.core.mail.trailers import trailer_lines

_HOSTS = r"(?:patch\.msgid\.link|lore\.kernel\.org/(?:r|all|[a-z0-9-]{1,60})|lkml\.kernel\.org/r)"
_LINK = re.compile(rf"Link: +https?://{_HOSTS}/(?P<id>[^\s/]{{3,400}})/?", re.IGNORECASE)
_MESSAGE_ID = re.compile(r"Message-ID: +<?(?P<id>[^\s<>]{3,400})>?", re.IGNORECASE)
# `git send-email` writes <20240102030405.1234-3-who@host>, b4
# <20240102-topic-v1-3-0123456789ab@host>; the 3 is the number of the mail in its series.
NUMBERED: Final = re.compile(
    r"<(?P<head>[^@<>]{6,300})-(?P<number>\d{1,4})-(?P<tail>[^@<>]*@[^@<>]+)>"
)
_PREFIXED = re.compile(
    r"\[[^\]]{0,60}(?:PATCH|RFC)[^\]]{0,60}\](?: ?\[[^\]]{0,60}\]){0,8} ?(?P<subject>\S.{0,990})"
)


def posted_as(message: str) -> PostedMail | None:
    """The Message-ID in the `Link:` or `Message-ID:` trailers of a commit message; None if there is
    none.

    The last one counts: whoever applied the patch added it. A link with a mark (`Link: ... [1]`)
    belongs to the text.
    """
    latest = None
    for line in trailer_lines(message):
        match = _LINK.fullmatch(line) or _MESSAGE_ID.fullmatch(line)
        identity = f"<{unquote(match['id'])}>" if match else ""
        if is_message_id(identity):
            latest = identity
    return None if latest is None else PostedMail(message_id=latest)


def series_ids(message_id: str, number: int, count: int) -> list[str]:
    """Return the Message-IDs of the `count` patches of a series, if that of its mail `number` (0:
    the cover letter) tells them; else an empty list.
    """
    match = NUMBERED.fullmatch(message_id)
    first = int(match["number"]) - number + 1 if match is not None else 0
    if match is None or first < 1:
        return []
    head, tail = match["head"], match["tail"]
    return [f"<{head}-{first + idx}-{tail}>" for idx in range(count)]


def is_posting(mail_subject: str, sender: str, subject: str, author: str) -> bool:
    """Return True if a mail posts a commit: `[PATCH v2 3/7] <subject>` from the author's address.

    Case and spacing do not matter; a reply does not count.
    """
    match = _PREFIXED.fullmatch(" ".join(mail_subject.split()))
    own, other = plain_address(sender), plain_address(author)
    if match is None or own is None or other is None:
        return False
    return (
        own.lower() == other.lower()
        and match["subject"].casefold() == " ".join(subject.split()).casefold()
    )
