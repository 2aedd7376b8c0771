"""Parse the console of a testbox during one order. Pure.

The console shows the start of the kernel under test, the progress of the job, the results, and the
start of the next kernel. All of it is untrusted: the kernel under test, and any root process in
it, can print anything, including partial lines and false messages.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import lzma
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from swingbot_worker import limits

_BANNER = re.compile(r"^.{0,40}?Linux version \d", re.M)
_FRAME = re.compile(r"SB:(\d{6}):([A-Za-z0-9+/=]{4,76}):")
_HEAD = re.compile(r"SB\+(\d{1,6}):([0-9a-f]{64}):")
_XZ = b"\xfd7zXZ\0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleReport:
    """State of the boot according to the console. `text` is that of the kernel under test only."""

    began: bool  # a kernel with our token on its command line printed its banner
    up: bool  # its init reported that it runs
    done: bool  # its init reported that the job is complete
    gone: bool  # another kernel started after it: the testbox has reset
    no_card: str  # the report of init about a network problem, empty if none
    text: str


def listen(text: str, token: str) -> ConsoleReport:
    """Parse the console `text` printed since the testbox left its idle system."""
    starts = [match.start() for match in _BANNER.finditer(text)]
    parts = [text[start:end] for start, end in zip(starts, [*starts[1:], len(text)], strict=False)]
    tested = next(
        (number for number, part in enumerate(parts) if f"swingbot={token}" in part[:20_000]), None
    )
    if tested is None:
        return ConsoleReport(began=False, up=False, done=False, gone=False, no_card="", text="")
    own_text = parts[tested]
    messages = re.findall(rf"swingbot: {re.escape(token)} (\w[^\r\n]{{0,100}})", own_text)
    return ConsoleReport(
        began=True,
        up="up" in messages,
        done=any(message.startswith("done ") for message in messages),
        gone=len(parts) > tested + 1,
        no_card=next((message for message in messages if message.startswith("no ")), ""),
        text=without_frames(own_text),
    )


def without_frames(text: str) -> str:
    """Return `text` without the lines of results and without carriage returns."""
    lines = [
        line for line in text.replace("\r", "").split("\n") if not line.startswith(("SB:", "SB+"))
    ]
    return "\n".join(lines)


def results(text: str, most: int) -> bytes | None:
    """Return the results contained in `text`, or None if they are incomplete.

    Also returns None if the unpacked results exceed `most` bytes. Each line may occur several times
    and be damaged: up to four different copies of each line are tried, and the SHA-256 checksum
    selects the valid combination.
    """
    heads = list(dict.fromkeys(_HEAD.findall(text)))[-4:]
    if not heads:
        return None
    lines: dict[int, list[str]] = {}
    for match in _FRAME.finditer(text):
        if (
            len(lines) < limits.CONSOLE_RESULTS_LINES
            and match[2] not in (copies := lines.setdefault(int(match[1]), []))
            and len(copies) < 4
        ):
            copies.append(match[2])
    for count, digest in heads:
        if (packed := _whole(lines, int(count), digest)) is not None:
            return _unpacked(packed, most)
    return None


def _whole(lines: Mapping[int, list[str]], count: int, digest: str) -> bytes | None:
    if count > limits.CONSOLE_RESULTS_LINES or not all(number in lines for number in range(count)):
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
    try:
        if packed.startswith(_XZ):
            stream = lzma.LZMADecompressor(memlimit=limits.CONSOLE_UNPACKER_BYTES)
            content = stream.decompress(packed, most + 1)
        else:
            content = zlib.decompressobj(wbits=31).decompress(packed, most + 1)
    except (zlib.error, lzma.LZMAError):
        return None
    return content if len(content) <= most else None
