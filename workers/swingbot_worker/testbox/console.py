"""What a console says about the kernel. Pure; the text is the guest's and may be anything."""

from __future__ import annotations

import re
from collections.abc import Iterator

from swingbot_jobs.printable import printable
from swingbot_worker.testbox.verdict import BootStatus, Verdict

_STAMP = re.compile(r"^(?:<\d+>)?\[\s*\d+\.\d+\]\s?(?:\[[^]]*\]\s)?")
_PANIC = re.compile(r"Kernel panic - not syncing")
# An exception in kernel mode ends in "... [#1]" on x86; the BUG: lines are printed before it, or stand alone.
# Lockup and stall reports are left out: on a shared host a vCPU that was not given time prints them too.
_OOPS = re.compile(
    r"\bBUG: (?!soft lockup|workqueue lockup)|kernel BUG at |\bOops\b.*:|general protection fault|: [0-9a-f]{4,16} \[#\d+\]|KASAN: |UBSAN: "
)
# "Code: 8b 4f 20 66 <90> f7": what memory holds around the instruction pointer, which stands behind an int3 that trapped.
_INT3 = re.compile(r"\bint3: [0-9a-f]{4,16} \[#1\]")
_CODE = re.compile(r"\bCode: (?:[0-9a-f]{2} )*([0-9a-f]{2}) <[0-9a-f]{2}>")
_BREAKPOINT = "cc"
LINE_LENGTH = 300


def judge(text: str) -> Verdict | None:
    """Panicked or oopsed, with the lines that say so; None if the console tells of neither."""
    panic = next(_matching(_PANIC, text), None)
    oops = next(_matching(_OOPS, text), None)
    if panic is not None:
        return Verdict(
            status=BootStatus.PANICKED, reason=panic if oops is None else f"{oops}; {panic}"
        )
    return None if oops is None else Verdict(status=BootStatus.OOPSED, reason=oops)


def trapped_on_stale_code(text: str) -> bool:
    """Whether the first oops is a breakpoint (int3) at an address where memory holds none.

    A kernel that patches its own text (jump labels, which `perf stat` switches) puts an int3 there for a moment. QEMU before 8.1 can go on
    running a translation of that moment on another vCPU (qemu-devel, July 2023, "qemu-x86_64 booting with 8.0.0 still see int3"): the
    machine is at fault then, not the kernel. A kernel that has an int3 where it traps shows its byte.
    """
    oops = next(_matching(_OOPS, text), None)
    if oops is None or not _INT3.search(oops):
        return False
    code = next((found for line in _lines(text) if (found := _CODE.search(line))), None)
    return code is not None and code[1] != _BREAKPOINT


def last_line(text: str) -> str:
    """The last line that says anything, for a kernel that fell silent; empty if there is none."""
    return next((line for line in reversed(list(_lines(text[-20_000:]))) if line), "")


def _matching(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (line for line in _lines(text) if pattern.search(line))


def _lines(text: str) -> Iterator[str]:
    """Lines without the time stamp, with everything unprintable made visible."""
    for line in re.split(r"[\r\n]+", text):
        plain = printable(line[: 4 * LINE_LENGTH])
        yield _STAMP.sub("", plain).strip()[:LINE_LENGTH]
