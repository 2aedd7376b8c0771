"""Parse the tags of a mail's subject: `Re:`, `[PATCH v3 2/7]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from swingbot.core.text.plain import clean

# A reply's prefix in another script stands before the tags: 答复: [PATCH] x
_PREFIX: Final = re.compile(
    r"(?:(?P<reply>(?:re|aw|antw(?:ort)?|sv|vs|res?p?|odp|ynt|rif|r)(?:\[\d{1,3}\])?"
    r"|[^\x00-\x7f]{1,12}(?= ?[:：] ?\[))|fwd?)"
    r" ?[:：] ?",
    re.IGNORECASE,
)
_BRACKET: Final = re.compile(r"\[([^\[\]]{0,200})\] ?")
_NUMBER: Final = re.compile(r"(?<![\w/.])(\d{1,4})(?:/| of )(\d{1,4})(?![\w/])")
_VERSION: Final = re.compile(
    r"(?:(?:\b|_|PATCH|RFC)(?:v(?:er(?:sion)?)?|r|rev(?:ision)?|take|try|round|#) ?#?|(?<= )#)"
    r"(?P<after>\d{1,3})(?![\w.])|\b(?P<nth>\d{1,3})(?:nd|rd|th) (?:version|try|attempt|take)\b",
    re.I,
)
_OF_TITLE: Final = re.compile(r"[(\[]v(\d{1,3})[)\]]$|^v(\d{1,3}): ", re.IGNORECASE)
_MARK: Final = re.compile(
    rf"\b(?:PATCH|RFC|RFT|RESEND|UPDATE)|{_NUMBER.pattern}|\bv\d{{1,3}}(?![\w.])", re.IGNORECASE
)
_AGAIN: Final = re.compile(r"\b(?:RESEN[DT]|REPOST|UPDATED?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A parsed subject: `title` without tags, `number`/`count` of N/M, `version` of vN.

    `patch`: it has tags of a patch. `again`: these say that it replaces one sent before.
    """

    title: str
    reply: bool = False
    patch: bool = False
    again: bool = False
    number: int | None = None
    count: int | None = None
    version: int = 1


def read_subject(subject: str) -> Tagged:
    """Parse a subject.

    Brackets are removed up to the last one that tags a patch: `[PATCH 1/2] [media] x` is the patch
    `[media] x`, which `git am` would call `x`.
    """
    text, tags = clean(subject), list[str]()
    reply, start, at = False, 0, 0
    while True:
        prefix = None if tags else _PREFIX.match(text, at)
        bracket = _BRACKET.match(text, at)
        if prefix is not None:
            reply = reply or prefix["reply"] is not None
            start = at = prefix.end()
        elif bracket is not None:
            at = bracket.end()
            if _MARK.search(bracket[1]):
                tags.append(bracket[1])
                start = at
        else:
            break
    title, all_tags = text[start:], " ".join(tags)
    number = _NUMBER.search(all_tags)
    version = _VERSION.search(all_tags) or (None if number else _OF_TITLE.search(title))
    return Tagged(
        title=title,
        reply=reply,
        patch=bool(tags),
        again=_AGAIN.search(all_tags) is not None,
        number=int(number[1]) if number else None,
        count=int(number[2]) if number else None,
        version=int(next(filter(None, version.groups()))) if version else 1,
    )
