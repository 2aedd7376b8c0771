"""Judge a kernel by its console output. Pure; the text is untrusted."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swingbot_jobs.printable import printable
from swingbot_worker import limits
from swingbot_worker.testbox.verdict import BootStatus, Verdict

_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\]\s?(?:\[[^]]*\]\s)?")
_PANIC = re.compile(r"Kernel panic - not syncing")
# An exception in kernel mode ends in "... [#1]" on x86; BUG: lines precede it or appear alone.
# Lockup and stall reports are ignored: on a shared host, a vCPU without host time prints them too.
_OOPS = re.compile(
    r"\bBUG: (?!soft lockup|workqueue lockup)|kernel BUG at |\bOops\b.*:|general protection fault"
    r"|: [0-9a-f]{4,16} \[#\d+\]|KASAN: |UBSAN: "
)
# "Code: 8b 4f 20 66 <90> f7": memory around the instruction pointer, which points behind an int3
# that trapped.
_INT3 = re.compile(r"\bint3: [0-9a-f]{4,16} \[#1\]")
_CODE = re.compile(r"\bCode: (?:[0-9a-f]{2} )*([0-9a-f]{2}) <[0-9a-f]{2}>")
_BREAKPOINT = "cc"


def judge(text: str) -> Verdict | None:
    """Return panicked or oopsed with the matching lines, or None if the console shows neither."""
    panic = next(_matching(_PANIC, text), None)
    oops = next(_matching(_OOPS, text), None)
    if panic is not None:
        return Verdict(
            status=BootStatus.PANICKED, reason=panic if oops is None else f"{oops}; {panic}"
        )
    return None if oops is None else Verdict(status=BootStatus.OOPSED, reason=oops)


def trapped_on_stale_code(text: str) -> bool:
    """Return whether the first oops is a breakpoint (int3) at an address whose memory has no int3.

    A kernel that patches its own text (jump labels, which `perf stat` switches) temporarily writes
    an int3. QEMU before 8.1 can keep a stale translation of it on another vCPU (qemu-devel, July
    2023, "qemu-x86_64 booting with 8.0.0 still see int3"). That is a fault of the machine, not of
    the kernel. A real int3 appears in the dumped memory.
    """
    oops = next(_matching(_OOPS, text), None)
    if oops is None or not _INT3.search(oops):
        return False
    code = next((found for line in _lines(text) if (found := _CODE.search(line))), None)
    return code is not None and code[1] != _BREAKPOINT


def last_line(text: str) -> str:
    """Return the last non-empty line, or an empty string."""
    return next((line for line in reversed(list(_lines(text[-20_000:]))) if line), "")


def _matching(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (line for line in _lines(text) if pattern.search(line))


def _lines(text: str) -> Iterator[str]:
    """Yield lines without time stamps, with unprintable characters escaped."""
    for line in re.split(r"[\r\n]+", text):
        plain = printable(line[: 4 * limits.CONSOLE_LINE_CHARACTERS])
        yield _STAMP.sub("", plain).strip()[: limits.CONSOLE_LINE_CHARACTERS]
