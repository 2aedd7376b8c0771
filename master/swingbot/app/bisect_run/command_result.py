"""Result of one execution of CMD: one number per run, or the reason why there are none. Pure."""

from __future__ import annotations

import math
import re
import signal
from dataclasses import dataclass
from typing import Final

from swingbot.app import limits
from swingbot.app.bisect_run.failures import RunError

_NUMBER: Final = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_NOT_FINITE: Final = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_SKIP: Final = 125
_STOP: Final = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """Values, or `failed` (this boot gave none; retry), or `untestable` (no boot of this commit
    can).
    """

    values: tuple[float, ...] = ()
    failed: str | None = None
    untestable: str | None = None
    warning: str | None = None


def read(status: int, out: str, err: str, pattern: re.Pattern[str] | None) -> CommandResult:
    """Result of a finished CMD; exit statuses mean the same as for `git bisect run`.

    Raises RunError where `git bisect run` would stop, too.
    """
    if status == _SKIP:
        return CommandResult(untestable="CMD exited with status 125: this commit cannot be tested")
    if status < 0:
        raise RunError(f"CMD was killed by {_signal_name(-status)}{_last(err)}")
    if status >= 128 or status in _STOP:
        meaning = {126: " (not executable)", 127: " (command not found)"}.get(
            status, f" ({_signal_name(status - 128)})" if 128 < status <= 192 else ""
        )
        raise RunError(
            f"CMD exited with status {status}{meaning}, which means that CMD itself is"
            f" broken{_last(err)}"
        )
    if status != 0:
        return CommandResult(failed=f"CMD exited with status {status}{_last(err)}")
    return _numbers(out, pattern)


def _numbers(out: str, pattern: re.Pattern[str] | None) -> CommandResult:
    """Parse one number per line.

    With a pattern, only matching lines count; its first group, if any, is the number.
    """
    values: list[float] = []
    non_finite: list[float] = []
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
        (values if math.isfinite(value) else non_finite).append(value)
        if len(values) > limits.BOOT_VALUES:
            raise RunError(
                f"CMD printed more than {limits.BOOT_VALUES} numbers in one boot; print"
                " one number per"
                " run, not per request"
            )
    warning = (
        f"{len(non_finite)} of {len(non_finite) + len(values)} values are not finite"
        f" ({non_finite[0]}) and are ignored"
        if non_finite
        else None
    )
    if not values:
        return CommandResult(failed=warning or "CMD printed no number", warning=warning)
    return CommandResult(values=tuple(values), warning=warning)


def _number(text: str, line: str) -> float:
    if _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return float(text)
    quoted = line.strip()[:100]
    raise RunError(
        f"CMD printed {quoted!r}, which is not a number; print one number per line and everything"
        " else to stderr, or select the number with --pattern"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _last(err: str) -> str:
    lines = [line.strip() for line in err.splitlines() if line.strip()]
    return f": {lines[-1][:200]}" if lines else ""
