"""Ask the worker on this host whether a testbox has all that it needs: `swingbot-worker check BOX --json`."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from pathlib import Path
from typing import Any, Final

from swingbot.app.process import TimedOut, answer

PROGRAM: Final = "swingbot-worker"
SECONDS: Final = 900.0  # a check may boot the machine by its power switch and by kexec
_MOST: Final = 200  # findings that are shown
_KEYS: Final = {"what": str, "ok": bool, "found": str, "do": str}

Finding = dict[str, Any]


class CannotCheck(OSError):
    """Nothing is known of the testbox from here; the message says what to type where."""


def check(name: str, driver: str | None) -> list[Finding]:
    """Findings {"what", "ok", "found", "do"}. `driver`: the host that drives the testbox, where known. Raises CannotCheck."""
    command = f"{PROGRAM} check {name}"
    if driver not in (None, socket.gethostname()):
        raise CannotCheck(
            f"testbox {name} is driven from {driver}; type there: {command}   (or here, with --here, if this host reaches it too)"
        )
    program = _program()
    if program is None:
        raise CannotCheck(
            f"there is no {PROGRAM} on this host; type on the host that drives testbox {name}: {command}"
        )
    try:
        status, said, complained = answer([program, "check", name, "--json"], timeout=SECONDS)
    except TimedOut:
        raise CannotCheck(
            f"`{command}` had not ended after {SECONDS:.0f} s; type it yourself to see where it stands"
        ) from None
    try:
        return [_finding(one) for one in json.loads(said)[:_MOST]]
    except (ValueError, KeyError, TypeError, RecursionError):
        last = next(
            (line for line in reversed((complained or said).splitlines()) if line.strip()),
            "it said nothing",
        )
        raise CannotCheck(f"`{command}` gave no findings (status {status}): {last[:500]}") from None


def as_text(name: str, found: list[Finding]) -> str:
    """What is there, and below each thing that is not what to do."""
    if not found:
        return f"testbox {name}: nothing has to be checked"
    lines = []
    for one in found:
        lines.append(f"{'ok ' if one['ok'] else 'NOT'}  {one['what']}: {one['found']}")
        lines += [] if one["ok"] or not one["do"] else [f"     do: {one['do']}"]
    missing = sum(not one["ok"] for one in found)
    end = (
        f"testbox {name} has all that it needs"
        if not missing
        else f"testbox {name} lacks {missing} of {len(found)}; do what is said and check again"
    )
    return "\n".join([*lines, end])


def _finding(given: Any) -> Finding:
    """One finding as the worker words it. Raises TypeError or KeyError for anything else."""
    for key, kind in _KEYS.items():
        if not isinstance(given[key], kind) and not (key in ("found", "do") and given[key] is None):
            raise TypeError(key)
    return {key: given[key] if given[key] is not None else "" for key in _KEYS}


def _program() -> str | None:
    """The one beside this interpreter, else the one on the path."""
    beside = Path(sys.executable).with_name(PROGRAM)
    return str(beside) if beside.is_file() else shutil.which(PROGRAM)
