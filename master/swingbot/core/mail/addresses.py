"""Mail addresses: which are valid in a header, which are sent to, and who opted out."""

from __future__ import annotations

import re
from collections.abc import Collection
from email.utils import getaddresses

from swingbot.core import limits
from swingbot.core.text.plain import clean

_SENDABLE = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?"
)
_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,98}[A-Za-z0-9])?"
)


class BadAddress(ValueError):
    """An invalid sender, recipient or domain; the message says which."""


def addresses(text: str) -> list[str]:
    """The bare addresses of a comma-separated list such as `A B <a@x>, c@y`. Raises BadAddress."""
    found = [address for _, address in getaddresses([text]) if address]
    if not found and text.strip():
        raise BadAddress(f"{text!r} has no mail address; one looks like name@example.org")
    for address in found:
        checked(address)
    return found


def checked(address: str) -> str:
    """Return `address` if it is valid in a header. Raises BadAddress."""
    if not _SENDABLE.fullmatch(address):
        raise BadAddress(
            f"{address!r} is not a mail address that swingbot can send to (ASCII, one @)"
        )
    return address


def plain_address(text: str) -> str | None:
    """The bare address in `Name <address>`; None if its form or length is not acceptable."""
    if clean(text) != text.strip() or len(text) > 2_000:
        return None
    # git does not quote a name with commas or quotes: only the text in the last <> counts.
    inner = re.fullmatch(r"[^<>]*<([^<>]+)>", text.strip())
    given = inner[1] if inner else text.strip()
    if len(given) > limits.ADDRESS_CHARACTERS:
        return None
    pairs = [address for _, address in getaddresses([given]) if address]
    return pairs[0] if pairs == [given] and _ADDRESS.fullmatch(given) else None


def wants_none(address: str, opt_outs: Collection[str]) -> bool:
    """Return True if the address or its whole domain has opted out."""
    lower, refused = address.lower(), {entry.strip().lower() for entry in opt_outs}
    return lower in refused or "@" + lower.partition("@")[2] in refused
