"""What one start of CMD told: numbers, one a line and a run, or why there are none. Pure."""

from __future__ import annotations

import math
import re
import signal
from dataclasses import dataclass
from typing import Final

from swingbot.app.bisect_run.failures import RunError

MOST_VALUES: Final = 10_000  # of one boot; more would only make the journal long
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_NOT_FINITE: Final = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_SKIP: Final = 125
_STOP: Final = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Values, or `failed` (this boot says nothing; it may be tried again), or `untestable` (no boot of this commit ever will)."""

    values: tuple[float, ...] = ()
    failed: str | None = None
    untestable: str | None = None
    warning: str | None = None


def read(status: int, out: str, err: str, pattern: re.Pattern[str] | None) -> CommandResult:
    """What an ended CMD told. Exit statuses mean what they mean to `git bisect run`. Raises Trouble where it would stop, too."""
    if status == _SKIP:
        return CommandResult(untestable="CMD exited with status 125: this commit cannot be tested")
    if status < 0:
        raise RunError(f"CMD was ended by {_signal_name(-status)}{_last(err)}")
    if status >= 128 or status in _STOP:
        meaning = {126: " (not executable)", 127: " (command not found)"}.get(
            status, f" ({_signal_name(status - 128)})" if 128 < status <= 192 else ""
        )
        raise RunError(
            f"CMD exited with status {status}{meaning}, which says that CMD itself is at fault{_last(err)}"
        )
    if status != 0:
        return CommandResult(failed=f"CMD exited with status {status}{_last(err)}")
    return _numbers(out, pattern)


def _numbers(out: str, pattern: re.Pattern[str] | None) -> CommandResult:
    """One number a line; with a pattern those lines that it is found in, and its first group if it has one."""
    found: list[float] = []
    odd: list[float] = []
    for line in out.splitlines():
        text = line.strip()
        if pattern is not None:
            match = pattern.search(line)
            if match is None:
                continue
            text = (match.group(1) if pattern.groups else match.group()) or ""
            text = text.strip()
        if not text:
            continue
        value = _number(text, line)
        (found if math.isfinite(value) else odd).append(value)
        if len(found) > MOST_VALUES:
            raise RunError(
                f"CMD printed more than {MOST_VALUES} numbers in one boot; print one number for each run, not for each request"
            )
    warning = (
        f"{len(odd)} of {len(odd) + len(found)} values are not finite ({odd[0]}) and tell nothing"
        if odd
        else None
    )
    if not found:
        return CommandResult(failed=warning or "CMD printed no number", warning=warning)
    return CommandResult(values=tuple(found), warning=warning)


def _number(text: str, line: str) -> float:
    if _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return float(text)
    quoted = line.strip()[:100]
    raise RunError(
        f"CMD printed {quoted!r}, which is not a number; print one number a line and all else to stderr, or say with --pattern where in the line it stands"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last(err: str) -> str:
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""
