"""What comes from outside, made safe to show on a terminal, on a page and in a mail."""

from __future__ import annotations


def printable(text: str, stand_in: str = "?") -> str:
    """`text` with `stand_in` for each character that is not printable, line feeds and escapes among them: it can neither begin a line nor move a cursor."""
    return "".join(char if char.isprintable() else stand_in for char in text)
