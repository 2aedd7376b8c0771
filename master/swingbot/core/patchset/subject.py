"""Parse the tags of a mail's subject: `Re:`, `[PATCH v3 2/7]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from swingbot.core.text.plain import clean

_REPLY: Final = re.compile(r"(?:re|aw|antw|sv)(?:\[\d{1,3}\])?: *", re.IGNORECASE)
_FORWARD: Final = re.compile(r"fwd?: *", re.IGNORECASE)
_BRACKET: Final = re.compile(r"\[([^\[\]]{0,200})\] *")
_NUMBER: Final = re.compile(r"(?<![\w/.])(\d{1,4})/(\d{1,4})(?![\w/])")
_VERSION: Final = re.compile(r"(?:\b|PATCH|RFC)v(\d{1,3})(?![\w.])", re.IGNORECASE)
_TAG: Final = re.compile(r"\b(?:PATCH|RFC|RFT|RESEND)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """A parsed subject: `title` without tags, `number`/`count` of N/M, `version` of vN."""

    title: str
    reply: bool = False
    number: int | None = None
    count: int | None = None
    version: int = 1


def read_subject(subject: str) -> Tagged:
    """Parse a subject.

    Brackets are removed up to the last one that tags a patch: `[PATCH 1/2] [media] x` is the patch
    `[media] x`, which `git am` would call `x`.
    """
    rest, reply = clean(subject), False
    while match := _REPLY.match(rest) or _FORWARD.match(rest):
        reply = reply or _REPLY.match(rest) is not None
        rest = rest[match.end() :]
    tags, title, at = "", rest, 0
    while match := _BRACKET.match(rest, at):
        at = match.end()
        if any(mark.search(match[1]) for mark in (_TAG, _NUMBER, _VERSION)):
            tags, title = f"{tags} {match[1]}", rest[at:]
    number, version = _NUMBER.search(tags), _VERSION.search(tags)
    return Tagged(
        title=title,
        reply=reply,
        number=int(number[1]) if number else None,
        count=int(number[2]) if number else None,
        version=int(version[1]) if version else 1,
    )
