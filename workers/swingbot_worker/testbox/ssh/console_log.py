"""What a box's console says of one order: when the kernel under test began, how it got on, its
results, and that another kernel runs again. Pure.

All of it is foreign text: a kernel under test, and whoever is root in it, can print anything, half
lines and lies included.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

_BANNER = re.compile(r"^.{0,40}?Linux version \d", re.M)
_FRAME = re.compile(r"SB:(\d{5}):([A-Za-z0-9+/=]{4,76}):")
_HEAD = re.compile(r"SB\+(\d{1,6}):([0-9a-f]{64}):")
# Lines of base64 that are looked at: 76 characters each, so 15 MB packed.
MOST_LINES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleReport:
    """`text` is the kernel's under test alone; `size` what it says that its results have, once the
    job is done.
    """

    began: bool  # a kernel that was given our word has printed its banner
    up: bool  # its init has
    done: bool
    gone: bool  # a kernel that is not ours began after it: the box has reset
    no_card: str  # what init says of a network card that it misses
    text: str


def listen(text: str, token: str) -> ConsoleReport:
    """Take the console's text since the box left its idle system apart."""
    starts = [match.start() for match in _BANNER.finditer(text)]
    parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=False)]
    ours = next(
        (number for number, part in enumerate(parts) if f"swingbot={token}" in part[:20_000]), None
    )
    if ours is None:
        return ConsoleReport(began=False, up=False, done=False, gone=False, no_card="", text="")
    mine = parts[ours]
    said = re.findall(rf"swingbot: {re.escape(token)} (\w[^\r\n]{{0,100}})", mine)
    return ConsoleReport(
        began=True,
        up="up" in said,
        done=any(word.startswith("done ") for word in said),
        gone=len(parts) > ours + 1,
        no_card=next((word for word in said if word.startswith("no ")), ""),
        text=without_frames(mine),
    )


def without_frames(text: str) -> str:
    """The text without lines of results, and without the carriage returns of a serial line."""
    kept = [
        line for line in text.replace("\r", "").split("\n") if not line.startswith(("SB:", "SB+"))
    ]
    return "\n".join(kept)


def results(text: str, most: int) -> bytes | None:
    """The results that stand in the text, None as long as no full set does. At most `most` bytes
    unpacked.

    Each line may come several times and damaged: of each the copies that occur are tried, the whole
    is right when its sha256 is.
    """
    heads = list(dict.fromkeys(_HEAD.findall(text)))[-4:]
    if not heads:
        return None
    lines: dict[int, list[str]] = {}
    for match in _FRAME.finditer(text):
        if (
            len(lines) < MOST_LINES
            and match[2] not in (copies := lines.setdefault(int(match[1]), []))
            and len(copies) < 4
        ):
            copies.append(match[2])
    for count, digest in heads:
        if (packed := _whole(lines, int(count), digest)) is not None:
            return _unpacked(packed, most)
    return None


def _whole(lines: Mapping[int, list[str]], count: int, digest: str) -> bytes | None:
    if count > MOST_LINES or not all(number in lines for number in range(count)):
        return None
    for choice in range(4):
        try:
            packed = base64.b64decode(
                "".join(
                    copies[min(choice, len(copies) - 1)]
                    for copies in (lines[number] for number in range(count))
                ),
                validate=True,
            )
        except binascii.Error:
            continue
        if hashlib.sha256(packed).hexdigest() == digest:
            return packed
    return None


def _unpacked(packed: bytes, most: int) -> bytes | None:
    stream = zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(packed, most + 1)
    except zlib.error:
        return None
    return content if len(content) <= most else None
