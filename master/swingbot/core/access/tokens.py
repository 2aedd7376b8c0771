"""Tokens: their form, digest, owner, lifetime and end.

A token is `swingbot_` and 256 random bits in base64url. One round of SHA-256 is enough to store it,
since there is no dictionary to try. The prefix lets secret scanners recognise one.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from swingbot.core import limits

PREFIX: Final = "swingbot_"
RANDOM_BYTES: Final = 32
_TOKEN: Final = re.compile(r"swingbot_[A-Za-z0-9_-]{43}")
_WHO: Final = re.compile(r"[^\W_](?:[\w .@+-]{0,62}\w)?")
DEFAULT_LIFE: Final = "90d"
FOREVER: Final = "never"
_LIFE: Final = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS: Final = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class BadToken(ValueError):
    """An invalid name or lifetime for a token; the message says what is valid."""


def looks_like_one(text: str) -> bool:
    return _TOKEN.fullmatch(text) is not None


def digest(text: str) -> str:
    """The stored form of a token or session: 64 hex digits of its SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()


def name_of(text: str) -> str:
    """A person's name as it is stored with that person's decisions. Raises BadToken."""
    who = " ".join(text.split())
    if _WHO.fullmatch(who) is None:
        raise BadToken(
            f"{text[:80]!r} is not a valid name: use at most 64 letters, digits, spaces"
            " and . @ + -, with a letter or digit at both ends"
        )
    return who


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedToken:
    """A token that has expired or, with `revoked_by`, was revoked, at `at`."""

    number: int
    who: str
    at: datetime
    revoked_by: str | None = None

    def __str__(self) -> str:
        by = f" by {self.revoked_by}" if self.revoked_by else ""
        return (
            f"Token {self.number} of {self.who} {'was revoked' if by else 'expired'} on"
            f" {self.at.astimezone(UTC):%Y-%m-%d at %H:%M UTC}{by}: ask an operator for another"
            " one, which `swingbot token create` makes on the service's host."
        )


def life_of(text: str) -> timedelta | None:
    """A lifetime such as 12h, 90d or 52w; None for `never`. Raises BadToken."""
    if text == FOREVER:
        return None
    match = _LIFE.fullmatch(text)
    life = int(match[1]) * _UNITS[match[2]] if match else None
    if life is None or life > timedelta(days=limits.TOKEN_DAYS):
        raise BadToken(
            f"{text[:40]!r} is not a valid lifetime: write 12h, 90d or 52w, ten years at most,"
            f" or {FOREVER}"
        )
    return life
