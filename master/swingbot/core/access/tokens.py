"""Tokens: what one looks like, how it is kept, whose it is, how long it is good.

A token is `swingbot_` and 256 random bits in base64url. It is random throughout, so one round of SHA-256 is enough to keep it by: there is no
dictionary to try. The prefix lets programs that look for secrets in repositories and logs know one.
"""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta
from typing import Final

PREFIX: Final = "swingbot_"
RANDOM_BYTES: Final = 32
LONGEST_LIFE: Final = timedelta(days=3650)
_TOKEN: Final = re.compile(r"swingbot_[A-Za-z0-9_-]{43}")
_WHO: Final = re.compile(r"[^\W_](?:[\w .@+-]{0,62}\w)?")
_LIFE: Final = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class BadToken(ValueError):
    """A name or a lifetime that a token cannot have; the message says what it can."""


def looks_like_one(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def digest(text: str) -> str:
    """What is kept of a token or a session: 64 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


def name_of(text: str) -> str:
    """A person's name as it is kept beside what the person decides. Raises BadToken."""
    who = " ".join(text.split())
    if _WHO.fullmatch(who) is None:
        raise BadToken(
            f"{text[:80]!r} is no name: letters, digits, blanks and . @ + - are, 64 at most, with a letter or digit at both ends"
        )
    return who


def life_of(text: str) -> timedelta:
    """A lifetime such as 12h, 90d or 52w. Raises BadToken."""
    match = _LIFE.fullmatch(text)
    life = int(match[1]) * _UNITS[match[2]] if match else None
    if life is None or life > LONGEST_LIFE:
        raise BadToken(f"{text[:40]!r} is no lifetime: write 12h, 90d or 52w, ten years at most")
    return life
