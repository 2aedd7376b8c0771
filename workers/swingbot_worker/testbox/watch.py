"""Watch a running machine: signs of life, limits, and the size of its console output."""

from __future__ import annotations

import time
from pathlib import Path

from swingbot_jobs.limits import RESULT_ARCHIVE_BYTES
from swingbot_worker import limits, runner
from swingbot_worker.testbox import console
from swingbot_worker.testbox.limits import BootLimits, silent
from swingbot_worker.testbox.verdict import BootStatus, Verdict

LOOK_SECONDS = 0.2
# A guest that does not power off within this time after its end marker is killed.
POWER_OFF_SECONDS = 15.0
# The last tar of the stream is smaller than this, padding included.
_TAIL_BYTES = 32 << 10


class Stop(Exception):
    """Stop the machine; `verdict` is None if the guest has sent its end marker."""

    def __init__(self, verdict: Verdict | None) -> None:
        super().__init__()
        self.verdict = verdict


class Watch:
    """Called periodically while a machine runs; raises Stop when it must be stopped.

    `console_log` and `results` grow meanwhile.
    """

    def __init__(self, console_log: Path, results: Path, limits: BootLimits) -> None:
        self._console, self._results, self._limits = console_log, results, limits
        self._sizes = (0, 0)
        self._changed = time.monotonic()
        self._ended: float | None = None

    def __call__(self, elapsed: float) -> None:
        sizes = (_size(self._console), _size(self._results))
        now = time.monotonic()
        if sizes != self._sizes:
            if sizes[1] != self._sizes[1] and self._ended is None and ended(self._results):
                self._ended = now
            self._sizes, self._changed = sizes, now
        if (verdict := flooded(self._console, self._results)) is not None:
            raise Stop(verdict)
        if self._ended is not None and now - self._ended > POWER_OFF_SECONDS:
            raise Stop(None)
        quiet = self._limits.quiet_job if sizes[1] else self._limits.quiet_boot
        if now - self._changed > quiet:
            usual = self._limits.usual_job if sizes[1] else self._limits.usual_boot
            raise Stop(silent(quiet, usual, self._hung(quiet)))

    def _hung(self, quiet: float) -> str:
        last = console.last_line(tail(self._console))
        when = "while the job ran" if self._sizes[1] else "before the job began"
        return f"no sign of life for {quiet:.0f} s {when}; " + (
            f"last on the console: {last}" if last else "the console is empty"
        )


def flooded(console_log: Path, results: Path, *logs: Path) -> Verdict | None:
    """Return the verdict if the console, the results or one of `logs` exceeds its limit."""
    for what, path, most in (
        ("console", console_log, limits.CONSOLE_BYTES),
        ("results port", results, RESULT_ARCHIVE_BYTES),
        *((log.name, log, limits.CONSOLE_BYTES) for log in logs),
    ):
        if _size(path) > most:
            last = console.last_line(tail(console_log))
            reason = (
                f"the {what} was flooded with more than {most >> 20} MiB; last on the console:"
                f" {last}"
            )
            return Verdict(status=BootStatus.LIMIT, reason=reason)
    return None


def ended(results: Path) -> bool:
    """Return whether the results contain the runner's end marker."""
    return f"{runner.END}\0".encode() in _tail_bytes(results)


def tail(path: Path) -> str:
    return _tail_bytes(path).decode(errors="replace")


def _tail_bytes(path: Path) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _TAIL_BYTES))
        return file.read(_TAIL_BYTES)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
