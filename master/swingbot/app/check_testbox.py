"""Check a testbox through the worker on this host: `swingbot-worker check NAME --json`."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from pathlib import Path
from typing import Any, Final

from swingbot.app.process import TimedOut, answer

PROGRAM: Final = "swingbot-worker"
SECONDS: Final = 900.0  # a check may power-cycle the machine and kexec a kernel
_MOST: Final = 200  # findings shown
_KEYS: Final = {"what": str, "ok": bool, "found": str, "do": str}

Finding = dict[str, Any]


class CannotCheck(OSError):
    """The testbox cannot be checked from this host; the message says which command to run where."""


def check(name: str, driver: str | None) -> list[Finding]:
    """Return findings {"what", "ok", "found", "do"}.

    `driver`: host that drives the testbox, if known. Raises CannotCheck.
    """
    command = f"{PROGRAM} check {name}"
    if driver not in (None, socket.gethostname()):
        raise CannotCheck(
            f"testbox {name} is driven by host {driver}; run there: {command}   (or use --here if"
            " this host can reach the testbox, too)"
        )
    program = _program()
    if program is None:
        raise CannotCheck(
            f"{PROGRAM} is not installed on this host; run on the host that drives testbox {name}:"
            f" {command}"
        )
    try:
        status, out, err = answer([program, "check", name, "--json"], timeout=SECONDS)
    except TimedOut:
        raise CannotCheck(
            f"`{command}` did not finish within {SECONDS:.0f} s; run it by hand to see where it"
            " hangs"
        ) from None
    try:
        return [_finding(one) for one in json.loads(out)[:_MOST]]
    except (ValueError, KeyError, TypeError, RecursionError):
        last = next(
            (line for line in reversed((err or out).splitlines()) if line.strip()),
            "no output",
        )
        raise CannotCheck(
            f"`{command}` printed no findings (exit status {status}): {last[:500]}"
        ) from None


def as_text(name: str, findings: list[Finding]) -> str:
    """Format the findings, each failed one followed by its remedy."""
    if not findings:
        return f"testbox {name}: nothing to check"
    lines = []
    for one in findings:
        lines.append(f"{'ok ' if one['ok'] else 'NOT'}  {one['what']}: {one['found']}")
        lines += [] if one["ok"] or not one["do"] else [f"     do: {one['do']}"]
    failed = sum(not one["ok"] for one in findings)
    end = (
        f"testbox {name} passed all checks"
        if not failed
        else f"testbox {name} failed {failed} of {len(findings)} checks; follow the advice above"
        " and check again"
    )
    return "\n".join([*lines, end])


def _finding(given: Any) -> Finding:
    """Validate one finding of the worker. Raises TypeError or KeyError."""
    for key, kind in _KEYS.items():
        if not isinstance(given[key], kind) and not (key in ("found", "do") and given[key] is None):
            raise TypeError(key)
    return {key: given[key] if given[key] is not None else "" for key in _KEYS}


def _program() -> str | None:
    """The program next to this interpreter, else the one in PATH."""
    beside = Path(sys.executable).with_name(PROGRAM)
    return str(beside) if beside.is_file() else shutil.which(PROGRAM)
