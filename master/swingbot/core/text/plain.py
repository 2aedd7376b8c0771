"""Clean, truncate and wrap plain text for mails and readmes.

The input may come from strangers (commit subjects, branch names, console facts). The output of
`clean` therefore cannot break a line, move the cursor or change the writing direction.
"""

from __future__ import annotations

import re
import unicodedata

WIDTH = 78  # columns of a mail; leaves room for a quote prefix ("> ") on an 80-column terminal
_IN_NUMBER = re.compile(r"(?<=\d) (?=%|\d{3}(?!\d)|/ \d)|(?<=\d /) (?=\d)")  # blanks
# Control, format (bidi, zero width), surrogate, private, unassigned, separators
_DROPPED = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def clean(text: str) -> str:
    """Return one line of printable text.

    Control and invisible characters become blanks, and runs of blanks become one.
    """
    if not text.isprintable():
        dropped = {ord(c): " " for c in set(text) if unicodedata.category(c) in _DROPPED}
        text = text.translate(dropped)
    return " ".join(text.split())


def columns(text: str) -> int:
    """Return the columns that `text` takes on a terminal.

    Wide East Asian characters count as two, combining marks as zero.
    """
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
    """Clean `text` and truncate it to `limit` columns and characters, marked with "...".

    It ends with a whole word unless that would leave less than half.
    """
    text = clean(text)
    if len(text) <= limit and columns(text) <= limit:
        return text
    prefix = text[: max(limit - 3, 0)]
    while columns(prefix) > limit - 3:
        prefix = prefix[:-1]
    words = prefix if text[len(prefix)] == " " else prefix.rpartition(" ")[0]
    return (words if 2 * len(words) >= limit else prefix).rstrip() + "..."


def person(author: str) -> str:
    """Return the name of an author, without the address; the address if there is no name."""
    return author.partition("<")[0].strip() or author


def repository(url: str) -> str:
    """Return the address of a tree for a reader, to whom a path of the server means nothing."""
    return "a directory of swingbot's server" if url.startswith(("/", "file:")) else url


def wrap(text: str, indent: str = "", first: str | None = None, width: int = WIDTH) -> list[str]:
    """Clean `text` and wrap it at `width` columns.

    A word longer than a line is broken. A URL gets a line of its own and is never broken, and a
    number keeps its unit, its thousands and its fraction: "18.0 %", "85 932", "32 / 768".
    """
    text = _IN_NUMBER.sub("\xa0", clean(text))
    lines: list[str] = []
    line = lead = indent if first is None else first
    for word in [
        piece for given in text.split(" ") for piece in _pieces(given, width - columns(indent))
    ]:
        gap = "" if line == lead else " "
        if line != lead and columns(line + gap + word) > width:
            lines.append(line)
            line, lead, gap = indent, indent, ""
        line += gap + word
    return [full.replace("\xa0", " ") for full in (*lines, line.rstrip())]


def _pieces(word: str, width: int) -> list[str]:
    """Split `word` into pieces of at most `width` columns and characters; URLs stay whole."""
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
    """Wrap a shell command at `width` columns, at blanks outside quotes, with backslashes.

    A shell parses the result into the same words.
    """
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
    """Split a command at blanks that are not quoted or escaped; quotes are preserved."""
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
