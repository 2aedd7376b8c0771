"""Plain text for mails and readmes: cleaned, cut, wrapped.

Everything here takes text from strangers (commit subjects, branch names, console facts), so nothing
that leaves `clean` can break a line, move the cursor or turn the direction of the writing round.
"""

from __future__ import annotations

import unicodedata

WIDTH = (
    78  # columns of a mail; two quotations ("> > ") still fit an 80-column terminal nearly whole
)
# control, format (bidi, zero width), surrogates, private, unassigned, separators
_DROPPED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def clean(text: str) -> str:
    """One line of printable text: control and invisible characters become blanks, runs of blanks become one."""
    if not text.isprintable():
        dropped = {ord(c): " " for c in set(text) if unicodedata.category(c) in _DROPPED}
        text = text.translate(dropped)
    return " ".join(text.split())


def columns(text: str) -> int:
    """Columns that `text` takes on a terminal: two for wide East Asian characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(c) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(c) in "WF"
        else 1
        for c in text
    )


def cut(text: str, limit: int) -> str:
    """`text` cleaned and cut to `limit` columns and characters, with "..." where something is gone."""
    text = clean(text)
    if len(text) <= limit and columns(text) <= limit:
        return text
    kept = text[: max(limit - 3, 0)]
    while columns(kept) > limit - 3:
        kept = kept[:-1]
    return kept.rstrip() + "..."


def wrap(text: str, indent: str = "", first: str | None = None, width: int = WIDTH) -> list[str]:
    """Cleaned `text` in lines of at most `width` columns. A word that fits no line is broken; a URL gets a line of its own, whole."""
    lines: list[str] = []
    line = lead = indent if first is None else first
    for word in [
        piece
        for given in clean(text).split(" ")
        for piece in _pieces(given, width - columns(indent))
    ]:
        gap = "" if line == lead else " "
        if line != lead and columns(line + gap + word) > width:
            lines.append(line)
            line, lead, gap = indent, indent, ""
        line += gap + word
    return [*lines, line.rstrip()]


def _pieces(word: str, width: int) -> list[str]:
    """`word` in pieces of at most `width` columns and characters; a URL stays whole, since half of one leads nowhere."""
    if "://" in word or (columns(word) <= width and len(word) <= width):
        return [word]
    pieces, piece = [], ""
    for c in word:
        if columns(piece + c) > width or len(piece) == width:
            pieces.append(piece)
            piece = ""
        piece += c
    return [*pieces, piece]


def shell(command: str, indent: str = "  ", width: int = WIDTH) -> list[str]:
    """A shell command in lines of at most `width` columns, joined by backslashes at blanks outside quotes; the same words for a shell."""
    lines: list[str] = []
    line = indent
    for word in _shell_words(command):
        gap = "" if not line.strip() else " "
        if gap and columns(line + gap + word) > width - 2:
            lines.append(line + " \\")
            line, gap = indent + "    ", ""
        line += gap + word
    return [*lines, line]


def _shell_words(command: str) -> list[str]:
    """The words of a command with their quotes still on: split at blanks that no quote or backslash protects."""
    words, word, quote, escaped = [], "", "", False
    for c in command:
        if c == " " and not quote and not escaped:
            words.append(word)
            word = ""
            continue
        word += c
        if escaped:
            escaped = False
        elif c == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
    return [w for w in [*words, word] if w]
