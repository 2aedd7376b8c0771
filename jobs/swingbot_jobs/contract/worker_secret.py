"""The secret with which a worker logs in: the first line of a file on both the master's and the
worker's host.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

SHORTEST: Final = 16  # characters; generated secrets have 64


class UnreadableSecret(Exception):
    """The file cannot be read; the message gives the reason in a word or two."""


class SecretTooShort(Exception):
    """The file holds no secret, or one that could be guessed."""

    def __init__(self, length: int) -> None:
        super().__init__(f"{length} characters")
        self.length = length


def read(file: Path) -> str:
    """Return the secret in `file`.

    Raises UnreadableSecret or SecretTooShort; the advice depends on the caller's side.
    """
    try:
        lines = file.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not text"
        raise UnreadableSecret(why) from None
    secret = lines[0].strip() if lines else ""
    if len(secret) < SHORTEST:
        raise SecretTooShort(len(secret))
    return secret
