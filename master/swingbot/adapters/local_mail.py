"""Mutual authentication of the sender of reports and the embedded mail server.

Both read one key. The server sends a random challenge and the sender answers with its HMAC, so
that a process which listens or takes the port of a stopped server does not learn the key.
"""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path
from typing import Final

from swingbot.adapters import artifacts

# An AUTH mechanism of its own: the sender shows the key to no other server.
MECHANISM: Final = "X-SWINGBOT"
_CHALLENGE_BYTES: Final = 32


def make_key(file: Path) -> bytes:
    """Return the key in `file`, which the first call creates. Raises OSError or ValueError."""
    return artifacts.secret(file)


def read_key(file: Path) -> bytes:
    """Return the key in `file`. Raises OSError or ValueError."""
    return bytes.fromhex(file.read_text())


def challenge() -> bytes:
    return secrets.token_hex(_CHALLENGE_BYTES).encode()


def proof(key: bytes, asked: bytes) -> str:
    """Return the answer to the challenge `asked`."""
    return hmac.new(key, b"swingbot local mail " + asked, "sha256").hexdigest()


def proves(key: bytes, asked: bytes, answer: bytes) -> bool:
    """Return True if `answer` proves knowledge of the key."""
    return hmac.compare_digest(proof(key, asked).encode(), answer)
