"""What a console says about the kernel. Pure; the text is the guest's and may be anything."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swingbot_worker.testbox.verdict import BootStatus, Verdict

_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\]\s?(?:\[[^]]*\]\s)?")
_PANIC = re.compile(r"Kernel panic - not syncing")
# An exception in kernel mode ends in "... [#1]" on x86; the BUG: lines are printed before it, or stand alone.
# Lockup and stall reports are left out: on a shared host a vCPU that was not given time prints them too.
_OOPS = re.compile(r"\bBUG: (?!soft lockup|workqueue lockup)|kernel BUG at |\bOops\b.*:|general protection fault|: [0-9a-f]{4,16} \[#\d+\]|KASAN: |UBSAN: ")
LINE_LENGTH = 300


def judge(text: str) -> Verdict | None:
    """Panicked or oopsed, with the lines that say so; None if the console tells of neither."""
    panic = next(_matching(_PANIC, text), None)
    oops = next(_matching(_OOPS, text), None)
    if panic is not None:
        return Verdict(status=BootStatus.PANICKED, reason=panic if oops is None else f"{oops}; {panic}")
    return None if oops is None else Verdict(status=BootStatus.OOPSED, reason=oops)


def last_line(text: str) -> str:
    """The last line that says anything, for a kernel that fell silent; empty if there is none."""
    return next((line for line in reversed(list(_lines(text[-20_000:]))) if line), "")


def _matching(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (line for line in _lines(text) if pattern.search(line))


def _lines(text: str) -> Iterator[str]:
    """Lines without the time stamp, with everything unprintable made visible."""
    for line in re.split(r"[\r\n]+", text):
        plain = "".join(char if char.isprintable() else "?" for char in line[: 4 * LINE_LENGTH])
        yield _STAMP.sub("", plain).strip()[:LINE_LENGTH]
