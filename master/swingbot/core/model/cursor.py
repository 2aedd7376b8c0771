"""Cursors: where the rows of an answer end, so that the next answer continues there.

A cursor has the sort key of the last row, so that it holds while rows come and go before it.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from swingbot.core.limits import CURSOR_CHARACTERS, PIECE_ROWS

PIECE: Final = PIECE_ROWS


class ListPiece(list[dict[str, Any]]):
    """Some rows of a list; `next` is the cursor after the last one, None if no row follows."""

    next: str | None = None

    def with_rows(self, changed: Iterable[dict[str, Any]]) -> ListPiece:
        """The same piece with its rows in another form."""
        piece = ListPiece(changed)
        piece.next = self.next
        return piece


class BadCursor(ValueError):
    """A string is not a cursor."""


def encode(key: Sequence[str | float | bool]) -> str:
    """Return the cursor of a row with this sort key, of characters that an address may have."""
    text = json.dumps(key, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str, like: Sequence[type]) -> list[str | float | bool]:
    """Return the sort key. Raises BadCursor if it does not have the types of `like`."""
    try:
        if len(cursor) > CURSOR_CHARACTERS:
            raise ValueError
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True)
        key = json.loads(text)
        if type(key) is not list or [type(value) for value in key] != [*like]:
            raise ValueError
        if any(b"\0" in str(value).encode() for value in key):  # a lone surrogate has no encoding
            raise ValueError
    except (ValueError, TypeError, binascii.Error, RecursionError):
        raise BadCursor(f"{cursor[:60]!r} is not a value of `next`") from None
    return key
