"""What a build log says went wrong. Pure; logs are hostile input."""

from __future__ import annotations

import re

ERRORS = 20
ERROR_LENGTH = 500

_COMPILER = re.compile(
    r":\d+(:\d+)?: (fatal )?error: |undefined reference to |^(\S*ld|objcopy|objtool)\S*: .*|^ERROR: |: syntax error|(error|Error): .*#error"
)
_KCONFIG = re.compile(r"Kconfig\S*:\d+: (?!warning)")
_MAKE = re.compile(r"^make(\[\d+\])?: \*\*\* ")
_LINKER_WARNING = re.compile(r"\bwarning: ")
# Other control characters than tab would move a terminal's cursor or make invalid pages.
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")

# Our lab's fault, whatever the commit: what the log holds, and what to do.
_LAB = (
    (
        "No space left on device",
        "The disk of the build cache is full; make room or lower what is kept.",
    ),
    ("Input/output error", "The disk of the build cache fails; see the worker's kernel log."),
    ("Disk quota exceeded", "The disk quota of the build cache is used up; make room."),
    (
        "Killed signal terminated program",
        "The compiler was killed, most likely for lack of memory; give the worker more, or lower SWINGBOT_BUILD_JOBS.",
    ),
    (
        "virtual memory exhausted",
        "The compiler ran out of memory; give the worker more, or lower SWINGBOT_BUILD_JOBS.",
    ),
    (
        "Cannot allocate memory",
        "The build ran out of memory; give the worker more, or lower SWINGBOT_BUILD_JOBS.",
    ),
    ("fatal error: gelf.h", "The kernel's objtool needs libelf; install libelf-dev."),
    ("fatal error: libelf.h", "The kernel's objtool needs libelf; install libelf-dev."),
    ("fatal error: openssl/", "This kconfig needs OpenSSL's headers; install libssl-dev."),
)


def error_lines(text: str) -> list[str]:
    """The first lines that say why a build failed: the tools' own first, then make's; at most 20 of 500 characters."""
    lines = [_clean(line) for line in text.split("\n")]
    tools = [
        line
        for line in lines
        if (_COMPILER.search(line) or _KCONFIG.search(line)) and not _LINKER_WARNING.search(line)
    ]
    make = [line for line in lines if _MAKE.search(line)]
    found = list(dict.fromkeys(tools + make))
    if not found:
        found = [line for line in lines if line.strip()][-5:]
    return [line[:ERROR_LENGTH] for line in found[:ERRORS]]


def lab_fault(text: str) -> str | None:
    """The sentence for the operator if the log shows that our lab failed and not the commit."""
    return next((sentence for sign, sentence in _LAB if sign in text), None)


def _clean(line: str) -> str:
    # Objects are built one directory below the source, so sources are named ../mm/x.c.
    return re.sub(r"(^|\s)(\.\./)+(?=\w)", r"\1", _CONTROL.sub("", line)).rstrip()
