"""Find the reason for a failed build in its log. Pure; logs are untrusted input."""

from __future__ import annotations

import re

from swingbot_worker import limits

ERRORS = 20

_COMPILER = re.compile(
    r":\d+(:\d+)?: (fatal )?error: |undefined reference to |^(?:(?=\S*ld)|objcopy|objtool)\S*: "
    r"|^ERROR: |: syntax error|^(?>.*?[eE]rror: ).*#error"
)
_KCONFIG = re.compile(r"Kconfig(?:(?!Kconfig)[^\s:])*:\d+: (?!warning)")
_MAKE = re.compile(r"^make(\[\d+\])?: \*\*\* ")
_LINKER_WARNING = re.compile(r"\bwarning: ")
# Control characters except tab would move a terminal's cursor or make pages invalid.
_CONTROL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")

# Infrastructure failures: text in the log, and the message with the remedy.
_FULL = "No space left on device"
_TOO_LONG = ("File too large", "File size limit exceeded")
_LAB = (
    (
        _FULL,
        "The disk of the build cache is full; free some space or lower the cache limits.",
    ),
    ("Input/output error", "The disk of the build cache has errors; see the worker's kernel log."),
    ("Disk quota exceeded", "The disk quota of the build cache is exhausted; free some space."),
    (
        "Killed signal terminated program",
        "The compiler was killed, most likely for lack of memory; add memory to the worker, or "
        "lower SWINGBOT_BUILD_JOBS.",
    ),
    (
        "virtual memory exhausted",
        "The compiler ran out of memory; add memory to the worker, or lower SWINGBOT_BUILD_JOBS.",
    ),
    (
        "Cannot allocate memory",
        "The build ran out of memory; add memory to the worker, or lower SWINGBOT_BUILD_JOBS.",
    ),
    ("fatal error: gelf.h", "The kernel's objtool needs libelf; install libelf-dev."),
    ("fatal error: libelf.h", "The kernel's objtool needs libelf; install libelf-dev."),
    ("fatal error: openssl/", "This kconfig needs OpenSSL's headers; install libssl-dev."),
)


def error_lines(text: str) -> list[str]:
    """Return the first error lines of a log: those of the tools, then those of make.

    At most 20 lines of 500 characters each.
    """
    lines = [_clean(line) for line in text.split("\n")]
    tools = [
        line
        for line in lines
        if (_COMPILER.search(line) or _KCONFIG.search(line)) and not _LINKER_WARNING.search(line)
    ]
    make = [line for line in lines if _MAKE.search(line)]
    errors = list(dict.fromkeys(tools + make))
    if not errors:
        errors = [line for line in lines if line.strip()][-5:]
    return [line[: limits.ERROR_CHARACTERS] for line in errors[:ERRORS]]


def lab_fault(text: str) -> str | None:
    """Return the message for the operator if the log shows an infrastructure failure."""
    return next((sentence for sign, sentence in _LAB if sign in text), None)


def disk_full(text: str) -> bool:
    """Return whether a tool could not write: its file system is full or its file too long."""
    return any(sign in text for sign in (_FULL, *_TOO_LONG))


def _clean(line: str) -> str:
    # Objects are built one directory below the source, so sources are named ../mm/x.c.
    return re.sub(r"(^|\s)(\.\./)+(?=\w)", r"\1", _CONTROL.sub("", line)).rstrip()
