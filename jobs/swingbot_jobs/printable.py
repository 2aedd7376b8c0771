"""Untrusted text made safe for a terminal, a page or a mail."""

from __future__ import annotations


def printable(text: str, stand_in: str = "?") -> str:
    """Replace each unprintable character of `text` by `stand_in`.

    That includes line feeds and escapes: the result can neither begin a line nor move a cursor.
    """
    return "".join(char if char.isprintable() else stand_in for char in text)
